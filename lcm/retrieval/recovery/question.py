"""What recovery reads from a question: whether it is about time, and which events it names, each as a few terms."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

from lcm.checks import check_keys, check_range
from lcm.encoding import from_yaml
from lcm.retrieval.terms import Terms

FULL_ANCHORS = 3
"""Different anchors from which a text is full of them."""
COMPARISON = "first or earlier"
"""The pattern of a question that asks which of two events came first."""
_WEAK = "when did"
_WEIGHTS = {
    "how many days": 1.0,
    "how long": 0.9,
    "before or after": 0.8,
    "since or between": 0.7,
    "first or earlier": 0.8,
    "when did": 0.7,
}


@cache
def words(name: str) -> frozenset[str]:
    """The words of the list `name`."""
    return frozenset(_content()[name].split())


@cache
def patterns(name: str) -> Mapping[str, re.Pattern[str]]:
    """The patterns of the map or list `name`, in order, by their names or by themselves."""
    content = _content()[name]
    named = content if isinstance(content, dict) else dict(zip(content, content, strict=True))
    return {key: re.compile(text, re.ASCII | re.IGNORECASE) for key, text in named.items()}


@cache
def pattern(name: str) -> re.Pattern[str]:
    """The pattern `name`; blanks in it mean nothing."""
    return re.compile(_content()[name], re.ASCII | re.IGNORECASE | re.VERBOSE)


@cache
def _content() -> Mapping[str, Any]:
    file = resources.files("lcm.retrieval.recovery").joinpath("vocabulary.yaml")
    content: Mapping[str, Any] = from_yaml(file.read_text("utf-8"))
    return content


@lru_cache(maxsize=4096)  # half of the time of a question about time, where its turns were looked at before
def anchor_density(text: str) -> float:
    """min(1, different anchors / 3): dates, clock times, years, weekdays, words like yesterday or last week.

    Anchors are counted in lower case. Source: libravdb memory 1.4.4.
    """
    found = {match.lower() for one in patterns("anchor_patterns").values() for match in one.findall(text)}
    return min(1.0, len(found) / FULL_ANCHORS)


@dataclass(frozen=True, slots=True)
class Slots:
    """Cuts a question at its clauses and keeps the terms that name something.

    A clause of at most `short_terms` terms is one slot; of a longer one the first and the last `edge_terms` are a slot
    each. At most `most_slots`, all different; where no clause has any, the first `edge_terms` of the whole question.

    Source: libravdb memory 1.4.4, which keeps words like "came" and "happened".
    """

    short_terms: int = 3
    edge_terms: int = 4
    most_slots: int = 4
    extra_stop_words: Collection[str] = ()
    """In lower case."""

    def __post_init__(self) -> None:
        check_range(self, "short_terms", "edge_terms", "most_slots", ge=1)

    def of(self, question: str, terms: Terms) -> list[tuple[str, ...]]:
        found: dict[tuple[str, ...], None] = {}
        for clause in pattern("clause_breaks").split(question):
            kept = self._named(clause, terms)
            if len(kept) > self.short_terms:
                found |= dict.fromkeys([tuple(kept[: self.edge_terms]), tuple(kept[-self.edge_terms :])])
            elif kept:
                found[tuple(kept)] = None
        if not found and (kept := self._named(question, terms)):
            found[tuple(kept[: self.edge_terms])] = None
        return list(found)[: self.most_slots]

    def _named(self, text: str, terms: Terms) -> list[str]:
        left_out = words("intent_stop_words") | words("slot_stop_words")
        return [term for term in terms.of(text) if term not in left_out and term not in self.extra_stop_words]


class TemporalQuery(NamedTuple):
    """A question as temporal ranking reads it."""

    indicator: float
    """How much it is about time, in [0, 1]."""
    is_active: bool
    patterns: tuple[str, ...]
    """Those that it shows, in order."""
    slots: tuple[tuple[str, ...], ...]
    """The events that it names, as terms."""
    is_selected: bool
    """It names as many events as temporal ranking can tell apart."""

    @property
    def is_comparison(self) -> bool:
        """It asks which of two events came first."""
        return COMPARISON in self.patterns


@dataclass(frozen=True, slots=True)
class TemporalQueries:
    """indicator = clamp01(sum of the weights of the patterns that a question shows / full_weight), each once; active
    from `threshold` on.

    Temporal ranking is for active questions with a pattern other than "when did". If "first or earlier" is the only
    such pattern, any number of slots will do; else it must be exactly two.

    Source: libravdb memory 1.4.4.
    """

    events: Slots = field(default_factory=Slots)
    weights: Mapping[str, float] = field(default_factory=lambda: dict(_WEIGHTS))
    full_weight: float = 1.5
    threshold: float = 0.3

    def __post_init__(self) -> None:
        check_keys(self, weights=patterns("query_patterns"))
        check_range(self, "weights", ge=0)
        check_range(self, "full_weight", gt=0)
        check_range(self, "threshold", ge=0, le=1)

    def read(self, question: str, terms: Terms) -> TemporalQuery:
        known = patterns("query_patterns")
        shown = tuple(name for name, pattern in known.items() if pattern.search(question))
        indicator = min(1.0, sum(self.weights[name] for name in shown) / self.full_weight)
        is_active = indicator >= self.threshold
        slots = tuple(self.events.of(question, terms))
        strong = [name for name in shown if name != _WEAK]
        is_selected = is_active and bool(strong) and (bool(slots) if strong == [COMPARISON] else len(slots) == 2)
        return TemporalQuery(indicator, is_active, shown, slots, is_selected)
