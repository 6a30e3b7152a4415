"""Which of two events a text speaks of, and how well it testifies that the event took place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.checks import check_range
from lcm.retrieval.recovery import vocabulary
from lcm.retrieval.recovery.raw_user import clamp01
from lcm.retrieval.terms import Terms

Slot = tuple[str, ...]


class Witness(NamedTuple):
    """A text that speaks of one of two events."""

    side: int
    """0 or 1: of the first event or of the second."""
    pastness: float
    """In [0, 1]: 1 where nothing says that it is yet to come."""
    score: float
    """In [0, 1]."""


@dataclass(frozen=True, slots=True)
class Witnesses:
    """A text belongs to the event of which it says the larger share of the telling terms, at least `least_share`.
    Telling terms are those of a slot that are not generic and not in the other slot.

        recall = said / terms of the slot, precision = said / max(least_content, content terms of the text)
        w      = position recall * position precision * max(least_pastness, pastness), where the slot has 2 terms
                 or more: a term first said within `early_share` of the content terms counts 1, a later one
                 `late_weight`; else w = recall
        score  = clamp01(w * (1 - other_penalty + other_penalty * (1 - recall of the other slot)))

    pastness = clamp01(1 - prospective phrases / max(1, first-person markers)).

    Source: libravdb memory 1.4.4.
    """

    least_share: float = 0.5
    least_content: int = 5
    early_share: float = 0.3
    late_weight: float = 0.5
    least_pastness: float = 0.6
    other_penalty: float = 0.3
    """0 = a text that also speaks of the other event is as good a witness."""
    is_discriminative: bool = True
    """False: every term of a slot is telling."""
    weighs_position: bool = True
    """False: w = recall, wherever the terms stand and whatever is yet to come."""

    def __post_init__(self) -> None:
        check_range(self, "least_share", "early_share", "late_weight", "least_pastness", "other_penalty", ge=0, le=1)
        check_range(self, "least_content", ge=1)

    def find(self, text: str, sides: tuple[Slot, Slot], terms: Terms) -> Witness | None:
        """None: the text speaks of neither event more than of the other."""
        said = terms.of(text)
        known = set(said)
        shares = [_share(telling, known) for telling in self._telling(sides)]
        if shares[0] == shares[1] or max(shares) < self.least_share:
            return None
        side = shares.index(max(shares))
        slot, other = sides[side], sides[1 - side]
        pastness = _pastness(text)
        weight = self._weight(slot, _content(said), pastness)
        kept = 1 - self.other_penalty + self.other_penalty * (1 - _share(other, known))
        return Witness(side, pastness, clamp01(weight * kept))

    def _telling(self, sides: tuple[Slot, Slot]) -> list[Slot]:
        if not self.is_discriminative:
            return list(sides)
        vague = vocabulary.words("generic_nouns") | vocabulary.words("vague_nouns")
        return [
            tuple(term for term in slot if term not in vague and term not in sides[1 - number])
            for number, slot in enumerate(sides)
        ]

    def _weight(self, slot: Slot, content: Sequence[str], pastness: float) -> float:
        if not self.weighs_position or len(slot) < 2:
            return _share(slot, set(content))
        early = self.early_share * len(content)
        places = {term: content.index(term) for term in slot if term in content}
        weighed = sum(1.0 if place < early else self.late_weight for place in places.values())
        precision = weighed / max(self.least_content, len(content))
        return weighed / len(slot) * precision * max(self.least_pastness, pastness)


def sides(slots: Sequence[Slot]) -> tuple[Slot, Slot] | None:
    """The two events that a question compares.

    The first two slots that are neither one generic noun nor begin with one and have at most two terms; where there
    are no two such, the first two that are no single generic noun; None where there are no two of those either.
    """
    generic = vocabulary.words("generic_nouns")
    named = [slot for slot in slots if not (len(slot) == 1 and slot[0] in generic)]
    sharp = [slot for slot in named if not (len(slot) <= 2 and slot[0] in generic)]
    first = (sharp if len(sharp) >= 2 else named)[:2]
    return (first[0], first[1]) if len(first) == 2 else None


def best_pair(
    witnesses: Sequence[Witness | None], worth: Sequence[float], tokens: Sequence[int], budget_tokens: float
) -> tuple[int, int] | None:
    """The places of a witness of each event that fit the budget together and are worth most; ties: fewer tokens."""
    pairs = [
        (first, second)
        for first, one in enumerate(witnesses)
        for second, two in enumerate(witnesses)
        if one is not None and one.side == 0 and two is not None and two.side == 1
    ]
    fitting = [pair for pair in pairs if tokens[pair[0]] + tokens[pair[1]] <= budget_tokens]
    return min(
        fitting,
        key=lambda pair: (-(worth[pair[0]] + worth[pair[1]]), tokens[pair[0]] + tokens[pair[1]]),
        default=None,
    )


def fewest_tokens(witnesses: Sequence[Witness | None], tokens: Sequence[int]) -> int | None:
    """What the cheapest witness of each event costs, together; None where an event has none."""
    costs = [
        [cost for one, cost in zip(witnesses, tokens, strict=True) if one is not None and one.side == side]
        for side in (0, 1)
    ]
    return min(costs[0]) + min(costs[1]) if all(costs) else None


def _share(slot: Slot, known: set[str]) -> float:
    return sum(term in known for term in slot) / len(slot) if slot else 0.0


def _content(said: Sequence[str]) -> list[str]:
    left_out = vocabulary.words("intent_stop_words") | vocabulary.words("slot_stop_words")
    return list(dict.fromkeys(term for term in said if term not in left_out))


def _pastness(text: str) -> float:
    ahead = len(vocabulary.pattern("prospective").findall(text))
    markers = sum(len(pattern.findall(text)) for pattern in vocabulary.patterns("first_person"))
    return clamp01(1 - ahead / max(1, markers))
