"""How many tokens of a text must be read, from its start, to have read some words in it.

Words are compared without regard to case, white space and kinds of quotation marks, as quotations are; a quotation that
does not stand so is looked for without any marks between words, for a document tells JSON as a person reads it.
"""

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache

from eval.measures.measure import REPORT_TOKENS
from eval.questions.quotation import end_of, folded

_STRETCH, _WORD, _ESCAPE = re.compile(r"\S+"), re.compile(r"\w+"), re.compile(r'\\[nrtbf"\\/]')


@dataclass(slots=True)
class ShownText:
    """A text as a reader is shown it."""

    text: str
    folded: str = field(init=False)
    words: str | None = field(init=False, default=None)
    """Without marks between them, once they are asked for."""

    def __post_init__(self) -> None:
        self.folded = folded(self.text)

    def tokens(self, end: int | None = None) -> int:
        """Of the text up to the end of its first so many folded letters; None = of all of it."""
        is_whole = end is None or end == len(self.folded)
        return _tokens(self.text if is_whole else self.text[: _unfolded(self.text, _STRETCH, end or 0)])

    def tokens_to(self, quotation: str) -> int | None:
        """Of the text up to the end of a quotation; None = it does not stand there."""
        as_it_stands, words = _sought(quotation)
        end = end_of(as_it_stands, self.folded)
        if end is not None:
            return self.tokens(end)
        if self.words is None:
            self.words = _words(self.text)
        end = end_of(words, self.words) if words else None
        return None if end is None else _tokens(self.text[: _unfolded(_unescaped(self.text), _WORD, end)])


@lru_cache(maxsize=1)
def _sought(quotation: str) -> tuple[str, str]:
    """It is looked for in one text after the other."""
    return folded(quotation), _words(quotation)


def _words(text: str) -> str:
    return folded(" ".join(_WORD.findall(_unescaped(unicodedata.normalize("NFC", text)))))


def _tokens(text: str) -> int:
    return REPORT_TOKENS.count([text])[0]


def _unescaped(text: str) -> str:
    """The text with blanks for the escapes of JSON, as long as it was."""
    return _ESCAPE.sub("  ", text)


def _unfolded(text: str, pattern: re.Pattern[str], end: int) -> int:
    """How many letters of a text its first `end` are made of, once what the pattern finds is folded, a blank apart."""
    length = 0
    for found in pattern.finditer(text):
        stretch = found[0]
        here = len(folded(stretch))
        if length + here >= end:
            lengths = range(1, len(stretch) + 1)
            return found.start() + 1 + bisect_left(lengths, end - length, key=lambda n: len(folded(stretch[:n])))
        length += here + 1
    return len(text)
