"""What can be read of a text by itself: its words and stems, who speaks, how it is put."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import NamedTuple

from lcm.text import CJK, is_cjk, is_cyrillic, load_stop_words, pairs, split_words, stem

READ_TEXTS = 50_000
"""Texts of which is kept what was read in each: questions are asked, and memories opened, again and again."""
_AUTHOR = re.compile(r"([^\W\d_][^:\n]{0,39}): ")  # as extraction writes who speaks
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
_SHARE = 0.02  # of the turns, at least, begin with the name of one who speaks
_TURNS = 2
_MAYBE_NAME = re.compile(rf"(?P<word>(?:(?![{CJK}])\w)+)(?:['’]s\b)?")  # a word that may be one, with its genitive


class TextFacts(NamedTuple):
    """What is read of one text at once."""

    words: tuple[str, ...]
    """As `content_words` gives them."""
    form: tuple[float, ...]
    """By `FORM`."""


FORM = ("words", "names", "first_person", "asks", "tells_time", "has_caption")
"""How a text is put: how many words it has, CJK characters among them, and how many names before a caption; 0 or 1:
whether it speaks of the speaker, its first line ends in a question mark, a word of time is in it, a caption."""


@lru_cache(maxsize=READ_TEXTS)
def read_text(text: str) -> TextFacts:
    """Read a text."""
    words, runs = split_words(text)
    stop_words = load_stop_words("english")
    camels = _CAMEL.findall(text) if _HUMP.search(text) else ()
    parts = [part.lower() for word in camels for part in _PART.findall(word)]
    kept = chain(
        [word for word in words if word not in stop_words],
        pairs(runs),
        [part for part in parts if part not in stop_words],
    )
    said, caption, _ = text.partition(_CAPTION)
    form = (
        len(words) + sum(map(len, runs)),
        len(_NAME.findall(said)),
        not _FIRST_PERSON.isdisjoint(words),
        text.partition("\n")[0].rstrip().endswith(("?", "？", "؟")),
        not _TIME_WORDS.isdisjoint(words),
        bool(caption),
    )
    return TextFacts(tuple(map(intern, kept)), tuple(map(float, form)))


def content_words(text: str) -> tuple[str, ...]:
    """Words without stop words, in order, then runs of CJK characters as pairs of neighbours, then the parts of
    identifiers in camel case, which are one word before."""
    return read_text(text).words


def author_of(text: str) -> str | None:
    """What may be the name of a speaker, at the beginning of a text: `text[len(name) + 2 :]` is what was said."""
    found = _AUTHOR.match(text)
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Speakers:
    """Who speaks in a talk, by the names that begin its turns, and what a query says of them."""

    authors: frozenset[str]
    names: frozenset[str]
    """The words of all their names, folded; in Cyrillic letters, their stems."""

    @classmethod
    def among(cls, turns_of: Mapping[str, int], turns: int) -> "Speakers":
        """
        Args:
            turns_of: how many turns begin with what may be a name.
            turns: how many there are.
        """
        least = max(_TURNS, _SHARE * turns)
        authors = frozenset(author for author, count in turns_of.items() if count >= least)
        return cls(authors, frozenset(word for author in authors for word in _name_words(author)))

    def without_names(self, text: str) -> str:
        """A query without the names of those who speak, whose turns all hold them; as it is if nothing else is left."""
        if not self.names:
            return text
        rest = _MAYBE_NAME.sub(lambda found: " " if _name_words(found["word"]) & self.names else found[0], text)
        for name in filter(is_cjk, self.names):
            rest = rest.replace(name, " ")
        rest = re.sub(r"\s+", " ", rest).strip()
        return rest if split_words(rest) != ([], []) else text

    def query_words(self, text: str) -> tuple[str, ...]:
        """The content words of a query that are no names."""
        return tuple(word for word in content_words(self.without_names(text)) if word not in self.names)

    def named(self, text: str) -> frozenset[str]:
        """The authors that a query names."""
        runs = split_words(text)[1]
        said = {*_name_words(text), *(name for name in self.names if any(name in run for run in runs))}
        return frozenset(author for author in self.authors if said & _name_words(author))


@lru_cache(maxsize=1000)
def _name_words(text: str) -> frozenset[str]:
    """What a name may be of a text: its words, uninflected, and runs of CJK characters."""
    words, runs = split_words(text)
    return frozenset((*map(_uninflected, words), *runs))


def _uninflected(word: str) -> str:
    """Names of Cyrillic letters are inflected as other words are."""
    return stem(word) if is_cyrillic(word) else word
