"""Temporal ranking that tells a question's events apart by their vectors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.protocols.models import Embedder
from lcm.records.query import Recalled
from lcm.retrieval.recovery.raw_user import age_s, clamp01
from lcm.retrieval.recovery.temporal_query import TemporalQuery
from lcm.retrieval.recovery.temporal_ranking import ScoredTurn, TemporalOrder, chosen_of
from lcm.retrieval.recovery.vocabulary import anchor_density
from lcm.retrieval.recovery.witness import Slot
from lcm.retrieval.terms import Terms


@dataclass(frozen=True, slots=True)
class SemanticSlots:
    """score = (1 - xi) * semantic + xi * (semantic_weight * semantic + recency_weight * recency + anchor_weight *
    anchors), where xi is the question's indicator.

    A turn speaks of an event if their cosine is at least `slot_cosine`. Of the `most_considered` best turns that score
    at least `floor_score` the ones that cover events not yet covered come first, as in `TemporalRanking`; the other
    turns are left out. No pair of witnesses is sought.

    Source: libravdb memory, mathematical reference, revision 3.3, section 9; the weight of a new event is 1.4.4's.
    """

    embedder: Embedder
    semantic_weight: float = 0.6
    recency_weight: float = 0.2
    anchor_weight: float = 0.2
    recency_per_s: float = 1e-5
    slot_cosine: float = 0.5
    floor_score: float = 0.15
    most_considered: int = 10
    most_chosen: int = 3
    new_slot_bonus: float = 0.25
    least_gain: float = 0.1

    def __post_init__(self) -> None:
        check_range(self, "semantic_weight", "recency_weight", "anchor_weight", "recency_per_s", "new_slot_bonus", ge=0)
        check_range(self, "slot_cosine", "floor_score", "least_gain", ge=-1, le=1)
        check_range(self, "most_considered", "most_chosen", ge=1)

    def rank(
        self,
        question: TemporalQuery,
        turns: Sequence[Recalled],
        tokens: Sequence[int],
        budget_tokens: float,
        now: datetime,
        terms: Terms,
    ) -> TemporalOrder:
        """Order turns, as `TemporalRanking.rank` does.

        Raises:
            LcmError: if a text could not be embedded.
        """
        plain = [self._considered(turn, question.indicator, now) for turn in turns]
        by_score = sorted(range(len(turns)), key=lambda place: -plain[place].score)
        kept = [place for place in by_score if plain[place].score >= self.floor_score][: self.most_considered]
        spoken = self._slots([turns[place].text for place in kept], question.slots)
        seen = {place: plain[place]._replace(slots=slots) for place, slots in zip(kept, spoken, strict=True)}
        considered = tuple(seen.get(place, one) for place, one in enumerate(plain))
        chosen = chosen_of(
            considered, kept, None, question.slots, self.most_chosen, self.new_slot_bonus, self.least_gain
        )
        rest = [place for place in kept if place not in chosen]
        return TemporalOrder((*chosen, *rest), considered, tuple(chosen), None, None, None)

    def _considered(self, turn: Recalled, indicator: float, now: datetime) -> ScoredTurn:
        semantic, anchors = clamp01(turn.score), anchor_density(turn.text)
        recency = math.exp(-self.recency_per_s * age_s(turn.created_at, now))
        temporal = self.semantic_weight * semantic + self.recency_weight * recency + self.anchor_weight * anchors
        score = clamp01((1 - indicator) * semantic + indicator * temporal)
        return ScoredTurn(score, semantic, recency, anchors, 0.0, (), None)

    def _slots(self, texts: Sequence[str], slots: Sequence[Slot]) -> list[tuple[Slot, ...]]:
        """The slots that each text speaks of."""
        if not texts or not slots:
            return [()] * len(texts)
        asked = self.embedder.embed([well_formed(" ".join(slot)) for slot in slots], "query")
        said = self.embedder.embed([well_formed(text) for text in texts], "document")
        near = np.asarray(said @ asked.T) >= self.slot_cosine
        return [tuple(slot for slot, is_near in zip(slots, row, strict=True) if is_near) for row in near]
