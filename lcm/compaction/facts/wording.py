"""Words as finders compare them."""

import re
from functools import lru_cache

from lcm.text import is_cjk, load_stop_words, words_in

_MARKS = re.compile(r"[`*\"“”]+|\\[nrt\"\\]")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-"})
_NEGATIONS = re.compile(r"\b(?:no|not|never|none|without|cannot|nor|neither|against|stop|avoid)\b|n't\b", re.IGNORECASE)
_NOT_CONTENT = frozenset(
    """really very just quite also still now then please actually so too ok okay well yes yeah let lets set change
    changed changes raise raised lower lowered increase increased reduce reduced bump bumped update updated make made
    about around roughly approximately exactly only currently over under per is's it's i'm i'd i'll we'll we're don't
    never always must should shall may might can could would will cannot don didn doesn isn won ll ve re
    cost costs take takes took be been has have had get gets got put""".split()  # noqa: SIM905
)


def folded(text: str) -> str:
    """A text without case, marks of emphasis and quotation, escapes, and breaks."""
    return " ".join(_MARKS.sub(" ", text.translate(_QUOTES)).casefold().split())


@lru_cache(maxsize=100_000)
def content_words(text: str) -> tuple[str, ...]:
    """Words that carry content, in order; of Chinese, Japanese and Korean pairs of neighbours."""
    found = words_in(text, without=load_stop_words("english") | _NOT_CONTENT)
    return tuple(word for word in found if len(word) > 1 or is_cjk(word))


def gist(text: str) -> str:
    """What a sentence is about: its content words, each once, in alphabetical order."""
    return " ".join(sorted(set(content_words(text))))


def is_negative(text: str) -> bool:
    return _NEGATIONS.search(text.translate(_QUOTES)) is not None


def label(before: str, behind: str) -> str:
    """What a value in a sentence is about: the two content words nearest before it, else those behind it."""
    near = _named(content_words(before))[-2:] or _named(content_words(behind))[:2]
    return " ".join(near)


def _named(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if not word.isdigit()]
