"""How alive a document is, as a factor."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch, Decay
from lcm.retrieval.ranking.stages.clamp import rescored

FALLBACK_RATIO = 0.3
"""Stands in for a multiplier that is no number; only a decay from outside could give one."""


@dataclass(frozen=True, slots=True)
class DecayBoost:
    """score times the decay's multiplier, clamped to [0, 1].

    Source: memory-lancedb-pro, applyDecayBoost.
    """

    decay: Decay

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        score = pl.col("score") * self.decay.multiplier()
        return rescored(frame, score, fallback_ratio=FALLBACK_RATIO)
