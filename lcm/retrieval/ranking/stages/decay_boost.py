"""How alive a document is, as a factor."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch, Decay, Expansion, Stage
from lcm.retrieval.ranking.stages.clamp import rescored
from lcm.retrieval.source.candidates import read_by

FALLBACK_RATIO = 0.3
"""Stands in for a multiplier that is no number; only a decay from outside could give one."""


@dataclass(frozen=True, slots=True)
class DecayBoost:
    """score times the decay's multiplier, clamped to [0, 1].

    Idle where there is no decay, and where a step before weighs one already, as a fusion does that has a `recency`:
    an age counts once.

    Source: memory-lancedb-pro, applyDecayBoost.
    """

    decay: Decay
    spared_kinds: Sequence[str] = ()
    """Kinds of documents that keep their score."""

    @property
    def reads_unit_scores(self) -> bool:
        return not getattr(self.decay, "is_off", False)

    @property
    def reads(self) -> tuple[str, ...]:
        return (*read_by(self.decay), *(["kind"] if self.spared_kinds else []))

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        return getattr(self.decay, "is_off", False) or any(hasattr(stage, "recency") for stage in before)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return rescored(frame, self._boosted, FALLBACK_RATIO, self.spared_kinds)

    def _boosted(self, columns: Columns) -> Numbers:
        return columns.numbers("score") * self.decay.multiplier(columns)
