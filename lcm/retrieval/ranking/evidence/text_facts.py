"""What can be read of a text by itself: its words and stems, who speaks, how it is put."""

import re
from functools import lru_cache
from itertools import chain
from sys import intern

import Stemmer

from lcm.retrieval.text_index.words import load_stop_words, split_words, windows

READ_TEXTS = 50_000
"""Texts of which is kept what was read in each: live talk grows by a few texts a question."""
_AUTHOR = re.compile(r"([^\W\d_][^:\n]{0,39}): ")  # as extraction writes who speaks
_CJK_WINDOW = 2
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_HUMP = re.compile(r"[a-z][A-Z]")  # most texts have none, and are not searched for camels
_CAMEL = re.compile(r"\b[A-Za-z]*[a-z][A-Z][A-Za-z]*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FIRST_PERSON = frozenset(("i", "me", "my", "mine", "we", "us", "our", "ours"))
_NAME = re.compile(r"(?<=[\w,;:'\"(] )[A-Z][a-z]+")  # a capital where no sentence begins
_CAPTION = "[picture:"
_TIME_WORDS = frozenset((
    "yesterday", "today", "tomorrow", "tonight", "morning", "last", "next", "week", "weekend", "weeks", "month",
    "months", "year", "years", "day", "days", "ago", "since", "soon", "recently", "monday", "tuesday",
    "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march", "april", "may",
    "june", "july", "august", "september", "october", "november", "december", "spring", "summer", "fall",
    "autumn", "winter",
))  # fmt: skip


def author_of(text: str) -> str | None:
    """What may be the name of a speaker, at the beginning of a text."""
    found = _AUTHOR.match(text)
    return found[1] if found else None


def without_author(text: str, author: str | None) -> str:
    return text if author is None else text[len(author) + 2 :]


@lru_cache(maxsize=READ_TEXTS)
def content_words(text: str) -> tuple[str, ...]:
    """Words without stop words, in order, then runs of CJK characters as pairs of neighbours, then the parts of
    identifiers in camel case, which are one word before."""
    words, runs = _split(text)
    stop_words = load_stop_words("english")
    camels = _CAMEL.findall(text) if _HUMP.search(text) else ()
    parts = [part.lower() for word in camels for part in _PART.findall(word)]
    kept = chain(
        [word for word in words if word not in stop_words],
        [pair for run in runs for pair in windows(run, _CJK_WINDOW)],
        [part for part in parts if part not in stop_words],
    )
    return tuple(map(intern, kept))


@lru_cache(maxsize=4)
def _split(text: str) -> tuple[list[str], list[str]]:
    """Words and CJK runs; all that is read of one text is read at once."""
    return split_words(text)


@lru_cache(maxsize=100_000)
def stem_of(word: str) -> str:
    """The word's stem, by Snowball: Russian of Cyrillic letters, else English."""
    stem: str = Stemmer.Stemmer("russian" if is_cyrillic(word) else "english").stemWord(word)
    return stem


@lru_cache(maxsize=READ_TEXTS)
def stems_of(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(stem_of, words))


def is_cyrillic(word: str) -> bool:
    return _CYRILLIC.search(word) is not None


@lru_cache(maxsize=READ_TEXTS)
def form_of(content: str) -> tuple[float, float, float]:
    """How many words a turn has and how many names, and whether it speaks of the speaker."""
    words, runs = _split(content)
    names = len(_NAME.findall(content.partition(_CAPTION)[0]))
    return float(len(words) + sum(map(len, runs))), float(names), float(not _FIRST_PERSON.isdisjoint(words))


@lru_cache(maxsize=READ_TEXTS)
def asks(content: str) -> bool:
    """Whether the first line ends in a question mark."""
    return content.partition("\n")[0].rstrip().endswith(("?", "？", "؟"))


@lru_cache(maxsize=READ_TEXTS)
def tells_time(content: str) -> bool:
    """Whether a word of time is in it."""
    return not _TIME_WORDS.isdisjoint(_split(content)[0])
