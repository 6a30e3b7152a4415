"""How alive a document is, as a factor."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from lcm.protocols.retrieval import Batch, Decay, Expansion, Stage
from lcm.retrieval.ranking.stages.clamp import rescored

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
    spared_kinds: Sequence[str] = field(default=(), hash=False)
    """Kinds of documents that keep their score."""

    @property
    def reads_unit_scores(self) -> bool:
        return not getattr(self.decay, "is_off", False)

    @property
    def reads(self) -> tuple[str, ...]:
        return (*self.decay.multiplier().meta.root_names(), *(["kind"] if self.spared_kinds else []))

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        return getattr(self.decay, "is_off", False) or any(hasattr(stage, "recency") for stage in before)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return rescored(frame, _boosted(self), fallback_ratio=FALLBACK_RATIO, spared_kinds=self.spared_kinds)


@cache
def _boosted(settings: DecayBoost) -> pl.Expr:
    return pl.col("score") * settings.decay.multiplier()
