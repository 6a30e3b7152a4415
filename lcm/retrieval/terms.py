"""A text as terms: what texts are compared by, word by word."""

import re
from dataclasses import dataclass
from typing import Literal

import polars as pl

from lcm.checks import check_choice, check_range
from lcm.retrieval.text_index.words import split_words, windows

TermWords = Literal["ascii", "unicode"]
_ASCII_RUN = re.compile("[a-z0-9_]+")
_ASCII_TERM = {"ascii": _ASCII_RUN.pattern, "unicode": "[a-z0-9]+"}
"""Of a text of ASCII characters."""
_CJK_WINDOW = 2
_LISTS = pl.List(pl.String)


@dataclass(frozen=True, slots=True)
class Terms:
    """Runs of letters and digits in lower case; those long enough are what texts are compared by.

    `ascii`: of a-z, 0-9 and underscore alone, so that other scripts have no terms. `unicode`: of any script, without
    accents; runs of Chinese, Japanese and Korean, which put no spaces between words, as pairs of neighbours, which are
    long enough at any `min_length`.

    Source: libravdb memory 1.4.4 for `ascii`; `unicode` is ours.
    """

    words: TermWords = "ascii"
    min_length: int = 3

    def __post_init__(self) -> None:
        check_choice(self, words=("ascii", "unicode"))
        check_range(self, "min_length", ge=1)

    def all_of(self, text: str) -> list[str]:
        """Every term in order, with repetitions; in `unicode` the pairs come last."""
        found, pairs = self._cut(text)
        return found + pairs

    def of(self, text: str) -> list[str]:
        """The terms that are long enough, in order, with repetitions."""
        found, pairs = self._cut(text)
        return [term for term in found if len(term) >= self.min_length] + pairs

    def all_of_each(self, texts: pl.Series) -> pl.Series:
        """`all_of` of each text of a column; null of null."""
        plain = texts.str.to_lowercase().str.extract_all(_ASCII_TERM[self.words])
        if self.words == "ascii":
            return plain
        is_plain = texts.str.len_bytes() == texts.str.len_chars()
        if is_plain.all():
            return plain
        terms = [
            None if simple or text is None else self.all_of(text) for text, simple in zip(texts, is_plain, strict=True)
        ]
        return plain.zip_with(is_plain.fill_null(True), pl.Series(plain.name, terms, dtype=_LISTS))

    def _cut(self, text: str) -> tuple[list[str], list[str]]:
        """The terms, and the pairs that stand for the words of scripts without spaces."""
        if self.words == "ascii":
            return _ASCII_RUN.findall(text.lower()), []
        found, runs = split_words(text)
        return found, [pair for run in runs for pair in windows(run, _CJK_WINDOW)]
