"""How each fact of a conversation stands in what is shown of it: as said, outdated, distorted, or not at all."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from rapidfuzz.distance import Levenshtein

from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.ledger import Fact, Ledger
from lcm.compaction.facts.statement import Kind, Statement
from lcm.compaction.facts.wording import folded

Standing = Literal["retained", "stale", "mutated", "missing"]
_SENTENCES: tuple[Kind, ...] = ("decision", "rule", "preference", "question")
"""Kinds whose key is the gist of a sentence, which may be told in other words."""
_ITSELF: tuple[Kind, ...] = ("path", "identifier", "url", "error", "command", "name", *_SENTENCES)
"""Kinds whose words hold all that the fact is, unless it has a value apart from its key."""
_SAME_GIST = 0.6
"""Of the words of two gists together, those in both, from which they are about the same."""
_SLIPS, _LETTERS_A_SLIP, _SHORTEST = 2, 40, 6
"""How many letters may differ, and one more for so many letters, between what somebody said and a distorted form of it;
shorter words have none."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text of a context that is no message as it was said: what it states, and its words folded."""

    statements: tuple[Statement, ...]
    words: str


@lru_cache(maxsize=20_000)
def shown_text(text: str) -> ShownText:
    return ShownText(statements_in(text), f" {folded(text)} ")


@dataclass(slots=True)
class Shown:
    """What a context shows of a conversation: messages as they were said, and other texts."""

    ledger: Ledger
    message_ids: Iterable[str]
    texts: Sequence[str]
    _stated: set[tuple[str, str, str]] = field(init=False)
    _values: dict[tuple[str, str], set[str]] = field(init=False)
    """Kind and key -> the values that texts and messages state."""
    _gists: dict[str, list[tuple[frozenset[str], str]]] = field(init=False)
    """Kind of sentence -> the gists that are stated, each with its value."""
    _named: dict[str, dict[str, str]] = field(init=False)
    """Kind -> what texts name: key and words."""
    _texts: list[ShownText] = field(init=False)

    def __post_init__(self) -> None:
        self._texts = [shown_text(text) for text in self.texts]
        quoted = [self.ledger.known(one) for text in self._texts for one in text.statements]
        said = [one for message_id in self.message_ids for one in self.ledger.stated.get(message_id, ())]
        self._stated = {one[:3] for one in (*said, *quoted)}
        self._values = defaultdict(set)
        self._gists = defaultdict(list)
        for kind, key, value in sorted(self._stated):
            self._values[kind, key].add(value)
            if kind in _SENTENCES:
                self._gists[kind].append((frozenset(key.split()), value))
        self._named = defaultdict(dict)
        for one in quoted:
            if one.kind in _ITSELF and one.kind not in _SENTENCES and (one.kind, one.key) not in self.ledger.facts:
                self._named[one.kind][one.key] = one.said

    def standing(self, fact: Fact) -> Standing:
        """A fact that stands nowhere is stale where an earlier value of it does, mutated where a value does that it
        never had, or a distorted form of its own words that nobody ever said; else it is missing."""
        if (fact.kind, fact.key, fact.value) in self._stated or self._stands_in_words(fact):
            return "retained"
        others = {value for value in self._others(fact) if value and value != fact.value}
        if not fact.value:
            others = set()
        if others - set(fact.former):
            return "mutated"
        if others:
            return "stale"
        return "mutated" if self._is_distorted(fact) else "missing"

    def _stands_in_words(self, fact: Fact) -> bool:
        """Whether its own words stand in a text, or nearly its own where it is a sentence."""
        if fact.kind not in _ITSELF or (fact.value and fact.kind not in _SENTENCES):
            return False
        words = folded(fact.said)
        if words and any(holds_words(text.words, words) for text in self._texts):
            return True
        return fact.kind in _SENTENCES and fact.value in self._of_gist(fact)

    def _others(self, fact: Fact) -> Iterator[str]:
        yield from self._values.get(fact.subject, ())
        if fact.kind in _SENTENCES:
            yield from self._of_gist(fact)

    def _of_gist(self, fact: Fact) -> set[str]:
        """The values that sentences of nearly the same gist state."""
        gist = frozenset(fact.key.split())
        return {
            value
            for other, value in self._gists.get(fact.kind, ())
            if len(gist & other) >= _SAME_GIST * len(gist | other)
        }

    def _is_distorted(self, fact: Fact) -> bool:
        """Whether a text names what differs from it in a few letters and was never said."""
        if (fact.value and fact.kind != "command") or len(fact.key) < _SHORTEST:
            return False
        slips = _SLIPS + len(fact.key) // _LETTERS_A_SLIP
        return any(
            Levenshtein.distance(fact.key, key, score_cutoff=slips) <= slips and not self.ledger.was_said(folded(said))
            for key, said in self._named.get(fact.kind, {}).items()
        )


def standings(ledger: Ledger, message_ids: Iterable[str], texts: Sequence[str]) -> Mapping[tuple[Kind, str], Standing]:
    """How every fact of a conversation stands in a context.

    Args:
        message_ids: of the messages that it shows as they were said.
        texts: its other texts, as summaries.
    """
    shown = Shown(ledger, message_ids, texts)
    return {subject: shown.standing(fact) for subject, fact in ledger.facts.items()}


def holds_words(text: str, words: str) -> bool:
    """Whether words stand in a text, whole."""
    at = text.find(words)
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + len(words) : at + len(words) + 1]
        is_begun = not (re.match(r"\w", before) and re.match(r"\w", words))
        if is_begun and not (re.match(r"\w", behind) and re.match(r"\w", words[-1])):
            return True
        at = text.find(words, at + 1)
    return False
