"""A text as terms: what texts are compared by, word by word."""

from dataclasses import dataclass
from typing import Literal

from lcm.checks import check_choice, check_range
from lcm.text import is_cjk, words_in

TermWords = Literal["ascii", "unicode"]


@dataclass(frozen=True, slots=True)
class Terms:
    """Words as `lcm.text.words_in` cuts them; those long enough are what texts are compared by.

    `ascii` has no terms of other scripts. In `unicode` the pairs of neighbours that stand for the words of Chinese,
    Japanese and Korean are long enough at any `min_length`.

    Source: libravdb memory 1.4.4 for `ascii`; `unicode` is ours.
    """

    words: TermWords = "ascii"
    min_length: int = 3

    def __post_init__(self) -> None:
        check_choice(self, words=("ascii", "unicode"))
        check_range(self, "min_length", ge=1)

    def all_of(self, text: str) -> list[str]:
        """Every term in order, with repetitions; in `unicode` the pairs come last."""
        return words_in(text, self.words)

    def of(self, text: str) -> list[str]:
        """The terms that are long enough, in order, with repetitions."""
        return [term for term in self.all_of(text) if len(term) >= self.min_length or is_cjk(term)]
