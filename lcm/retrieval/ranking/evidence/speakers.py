"""Who speaks in a haystack: names that begin its turns, and what a query says of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from lcm.retrieval.ranking.evidence.text_facts import is_cyrillic, stem_of
from lcm.retrieval.text_index.words import CJK, split_words

_SHARE = 0.02  # of the turns, at least, begin with the name of one who speaks
_TURNS = 2
_NAME = re.compile(rf"(?P<word>(?:(?![{CJK}])\w)+)(?:['’]s\b)?")  # a word that may be one, with its genitive


@dataclass(frozen=True, slots=True)
class Speakers:
    """The authors of a haystack's turns."""

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
        rest = _NAME.sub(lambda found: " " if _name_words(found["word"]) & self.names else found[0], text)
        for name in filter(_is_cjk, self.names):
            rest = rest.replace(name, " ")
        rest = re.sub(r"\s+", " ", rest).strip()
        return rest if split_words(rest) != ([], []) else text

    def named(self, text: str) -> frozenset[str]:
        """The authors that a query names."""
        runs = split_words(text)[1]
        said = {*_name_words(text), *(name for name in self.names if any(name in run for run in runs))}
        return frozenset(author for author in self.authors if said & _name_words(author))

    def not_named(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The words that are no names."""
        return tuple(word for word in words if _uninflected(word) not in self.names) if self.names else words


@lru_cache(maxsize=1000)
def _name_words(text: str) -> frozenset[str]:
    """What a name may be of a text: its words, uninflected, and runs of CJK characters."""
    words, runs = split_words(text)
    return frozenset((*map(_uninflected, words), *runs))


def _uninflected(word: str) -> str:
    """Names of Cyrillic letters are inflected as other words are."""
    return stem_of(word) if is_cyrillic(word) else word


def _is_cjk(name: str) -> bool:
    return re.match(f"[{CJK}]", name) is not None
