"""Whether a question is about time, and about which events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lcm.checks import check_keys, check_range
from lcm.retrieval.recovery import vocabulary
from lcm.retrieval.recovery.slots import Slots
from lcm.retrieval.terms import Terms

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
        check_keys(self, weights=vocabulary.named_patterns("query_patterns"))
        check_range(self, "weights", ge=0)
        check_range(self, "full_weight", gt=0)
        check_range(self, "threshold", ge=0, le=1)

    def read(self, question: str, terms: Terms) -> TemporalQuery:
        known = vocabulary.named_patterns("query_patterns")
        shown = tuple(name for name, pattern in known.items() if pattern.search(question))
        indicator = min(1.0, sum(self.weights[name] for name in shown) / self.full_weight)
        is_active = indicator >= self.threshold
        slots = tuple(self.events.of(question, terms))
        strong = [name for name in shown if name != _WEAK]
        is_selected = is_active and bool(strong) and (bool(slots) if strong == [COMPARISON] else len(slots) == 2)
        return TemporalQuery(indicator, is_active, shown, slots, is_selected)
