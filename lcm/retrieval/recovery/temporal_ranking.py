"""Which turns answer a question about time: near, recent, dated, and of the events that it names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from lcm.checks import check_range
from lcm.records.query import Recalled
from lcm.retrieval.recovery.raw_user import age_s, clamp01
from lcm.retrieval.recovery.temporal_query import TemporalQuery
from lcm.retrieval.recovery.vocabulary import anchor_density
from lcm.retrieval.recovery.witness import Slot, Witness, Witnesses, best_pair, fewest_tokens, sides
from lcm.retrieval.terms import Terms


class ScoredTurn(NamedTuple):
    """A turn as temporal ranking sees it; numbers in [0, 1]."""

    score: float
    semantic: float
    recency: float
    anchors: float
    coverage: float
    slots: tuple[Slot, ...]
    """Those of the question that it speaks of."""
    witness: Witness | None


class TemporalOrder(NamedTuple):
    """Turns in the order of temporal ranking; numbers are places among them."""

    order: tuple[int, ...]
    """All of them: the pair, then those chosen, then the rest by score."""
    considered: tuple[ScoredTurn, ...]
    """In the order given."""
    chosen: tuple[int, ...]
    """The pair and what was added to it, in the order of choosing."""
    pair: tuple[int, int] | None
    """A witness of each event of a comparison."""
    sides: tuple[Slot, Slot] | None
    """The events of a comparison."""
    pair_tokens: int | None
    """What the cheapest two witnesses cost."""


@dataclass(frozen=True, slots=True)
class TemporalRanking:
    """score = clamp01(0.40 semantic + 0.25 recency + 0.20 anchors + 0.15 coverage, + 0.05 if the question is active).

    Of a comparison: clamp01(0.15 semantic + 0.15 recency + 0.15 coverage + 0.55 witness). coverage is the share of the
    question's slots that a turn speaks of: of each at least `slot_share` of the terms.

    The pair of witnesses worth most within the budget is chosen first, then turn by turn the one with the highest
    score + `new_slot_bonus` * slots not yet covered / slots, up to `most_chosen`, while that is at least `least_gain`.

    Source: libravdb memory 1.4.4.
    """

    witnesses: Witnesses = field(default_factory=Witnesses)
    semantic_weight: float = 0.4
    recency_weight: float = 0.25
    anchor_weight: float = 0.2
    coverage_weight: float = 0.15
    active_bonus: float = 0.05
    recency_per_s: float = 1e-5
    slot_share: float = 0.5
    comparison_semantic_weight: float = 0.15
    comparison_recency_weight: float = 0.15
    comparison_coverage_weight: float = 0.15
    comparison_witness_weight: float = 0.55
    most_chosen: int = 3
    new_slot_bonus: float = 0.25
    least_gain: float = 0.12
    blends_comparison: bool = True
    """False: a comparison is scored as any other question."""
    pairs_by_witness: bool = True
    """False: the pair is the one with the highest scores."""

    def __post_init__(self) -> None:
        names = [name for name in self.__slots__ if name.endswith(("_weight", "_bonus", "_per_s", "_gain"))]
        check_range(self, *names, ge=0)
        check_range(self, "slot_share", ge=0, le=1)
        check_range(self, "most_chosen", ge=1)

    def rank(
        self,
        question: TemporalQuery,
        turns: Sequence[Recalled],
        tokens: Sequence[int],
        budget_tokens: float,
        now: datetime,
        terms: Terms,
    ) -> TemporalOrder:
        """Order turns.

        Args:
            question: as `TemporalQueries` read it.
            turns: by cosine.
            tokens: what each costs.
            budget_tokens: what a pair of witnesses may cost.
            now: when it was asked.
            terms: how texts are compared; the question's slots are made by the same.
        """
        events = sides(question.slots) if question.is_comparison else None
        seen = tuple(self._consider(turn, question, events, now, terms) for turn in turns)
        by_score = sorted(range(len(turns)), key=lambda place: -seen[place].score)
        found = [seen[place].witness for place in by_score]
        worth = [
            (one.score if self.pairs_by_witness else seen[place].score) if one else 0.0
            for place, one in zip(by_score, found, strict=True)
        ]
        costs = [tokens[place] for place in by_score]
        best = best_pair(found, worth, costs, budget_tokens)
        pair = None if best is None else (by_score[best[0]], by_score[best[1]])
        chosen = chosen_of(seen, by_score, pair, question.slots, self.most_chosen, self.new_slot_bonus, self.least_gain)
        rest = [place for place in by_score if place not in chosen]
        return TemporalOrder((*chosen, *rest), seen, tuple(chosen), pair, events, fewest_tokens(found, costs))

    def _consider(
        self, turn: Recalled, question: TemporalQuery, events: tuple[Slot, Slot] | None, now: datetime, terms: Terms
    ) -> ScoredTurn:
        known = set(terms.of(turn.text))
        semantic, anchors = clamp01(turn.score), anchor_density(turn.text)
        recency = math.exp(-self.recency_per_s * age_s(turn.created_at, now))
        slots = tuple(slot for slot in question.slots if self._speaks_of(slot, known))
        coverage = len(slots) / len(question.slots) if question.slots else 0.0
        witness = None if events is None else self.witnesses.find(turn.text, events, terms)
        if events is not None and self.blends_comparison:
            score = (
                self.comparison_semantic_weight * semantic
                + self.comparison_recency_weight * recency
                + self.comparison_coverage_weight * coverage
                + self.comparison_witness_weight * (witness.score if witness else 0.0)
            )
        else:
            score = (
                self.semantic_weight * semantic
                + self.recency_weight * recency
                + self.anchor_weight * anchors
                + self.coverage_weight * coverage
                + (self.active_bonus if question.is_active else 0.0)
            )
        return ScoredTurn(clamp01(score), semantic, recency, anchors, coverage, slots, witness)

    def _speaks_of(self, slot: Slot, known: set[str]) -> bool:
        return sum(term in known for term in slot) / len(slot) >= self.slot_share


def chosen_of(
    seen: Sequence[ScoredTurn],
    by_score: Sequence[int],
    pair: tuple[int, int] | None,
    slots: Sequence[Slot],
    most: int,
    new_slot_bonus: float,
    least_gain: float,
) -> list[int]:
    """The pair, then turn by turn the one that gains most: score + new_slot_bonus * slots not yet covered / slots."""
    chosen = list(pair or ())
    covered = {slot for place in chosen for slot in seen[place].slots}
    while len(chosen) < most:
        gains = {
            place: seen[place].score + new_slot_bonus * len(set(seen[place].slots) - covered) / max(1, len(slots))
            for place in by_score
            if place not in chosen
        }
        best = max(gains, key=lambda place: gains[place], default=None)
        if best is None or gains[best] < least_gain:
            break
        chosen.append(best)
        covered |= set(seen[best].slots)
    return chosen
