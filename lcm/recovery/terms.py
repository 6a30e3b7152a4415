"""A text as terms: what it is compared by, word by word."""

import re
from dataclasses import dataclass
from typing import Literal

from lcm.text_index.words import split_words, windows

TermWords = Literal["ascii", "unicode"]
_ASCII_RUN = re.compile("[a-z0-9_]+")
_CJK_WINDOW = 2


@dataclass(frozen=True, slots=True)
class Terms:
    """Runs of letters and digits in lower case; those long enough are what texts are compared by.

    `ascii`: of a-z, 0-9 and underscore alone, so that other scripts have no terms. `unicode`: of any script, without
    accents; runs of Chinese, Japanese and Korean as pairs of neighbours, which are long enough at any `min_length`.

    Source: libravdb memory 1.4.4 for `ascii`.
    """

    words: TermWords = "ascii"
    min_length: int = 3

    def __post_init__(self) -> None:
        if self.words not in ("ascii", "unicode"):
            raise ValueError(f"unknown words {self.words!r}; choose one of: ascii, unicode")
        if self.min_length < 1:
            raise ValueError(f"min_length must be >= 1, got {self.min_length}")

    def all_of(self, text: str) -> list[str]:
        """Every term in order, with repetitions; in `unicode` the pairs come last."""
        if self.words == "ascii":
            return _ASCII_RUN.findall(text.lower())
        found, runs = split_words(text)
        return found + [pair for run in runs for pair in windows(run, _CJK_WINDOW)]

    def of(self, text: str) -> list[str]:
        """The terms that are long enough, in order, with repetitions."""
        if self.words == "ascii":
            return [term for term in _ASCII_RUN.findall(text.lower()) if len(term) >= self.min_length]
        found, runs = split_words(text)
        pairs = [pair for run in runs for pair in windows(run, _CJK_WINDOW)]
        return [term for term in found if len(term) >= self.min_length] + pairs
