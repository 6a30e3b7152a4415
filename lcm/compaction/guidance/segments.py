"""Sentences cut into parts at marks and conjunctions."""

from collections.abc import Sequence
from typing import NamedTuple

from lcm.compaction.guidance.grammar import grammar
from lcm.compaction.guidance.sentences import Word

_BREAKS = frozenset(",;:()–—-…") | {"..."}
_CONNECTORS = frozenset(("so", "but", "because", "although", "though"))
HARD_BREAKS = frozenset(";:–—-(…") | {"...", "so", "but"}


class Segment(NamedTuple):
    """One part of a sentence."""

    connector: str
    """The mark or word before it."""
    words: tuple[Word, ...]

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def without_asides(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Words without what stands between two commas and says nothing of its own ("as a rule")."""
    words = tuple(
        word
        for i, word in enumerate(words)
        if not (word.text == "," and [w.text for w in words[i - 1 : i + 2 : 2]] == ["never", "ever"])
    )
    text = " ".join(word.text for word in words)
    aside = grammar().shapes["aside"]
    while found := aside.search(text):
        first = text[: found.start()].count(" ") + 1
        words = words[:first] + words[first + found.group().count(" ") :]
        text = " ".join(word.text for word in words)
    return words


def segments(words: tuple[Word, ...]) -> list[Segment]:
    """The parts of a sentence, in order, without the marks between them."""
    parts: list[Segment] = []
    connector, begin = "", 0
    for i, word in enumerate(words):
        is_break = word.text in _BREAKS or word.text in ".!?"
        if is_break or _connects(words, i):
            if i > begin:
                parts.append(Segment(connector, words[begin:i]))
            begin, connector = i + 1, word.text
    if begin < len(words):
        parts.append(Segment(connector, words[begin:]))
    return parts


def _connects(words: Sequence[Word], i: int) -> bool:
    """Whether a word joins two clauses: "so" does, in "say so" and "so that" it does not."""
    if words[i].text not in _CONNECTORS or i + 1 == len(words):
        return False
    is_end = words[i + 1].text in _BREAKS or words[i + 1].text in ".!?"
    is_other = words[i + 1].text in ("that", "much", "many", "far", "long", "as", "to", "on", "of")
    return not (words[i].text in ("so", "because") and (is_end or is_other)) and not is_end
