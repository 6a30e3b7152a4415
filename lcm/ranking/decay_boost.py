"""How alive a document is, as a factor."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols import Batch, Decay
from lcm.ranking.clamp import rescored


@dataclass(frozen=True, slots=True)
class DecayBoost:
    """score times the decay's multiplier, clamped to [0, 1].

    Source: memory-lancedb-pro, applyDecayBoost.
    """

    decay: Decay
    floor_ratio: float = 0.3
    """Stands in for a multiplier that is no number."""

    def __post_init__(self) -> None:
        if not 0 <= self.floor_ratio <= 1:
            raise ValueError(f"floor_ratio must be in [0, 1], got {self.floor_ratio}")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        score = pl.col("score") * self.decay.multiplier()
        return rescored(frame, score, fallback_ratio=self.floor_ratio)
