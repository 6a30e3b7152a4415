"""How alive a document is, as a factor."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols import Batch, Decay
from lcm.ranking.clamp import rescored


@dataclass(frozen=True, slots=True)
class DecayBoost:
    """score times the decay's multiplier, but at least floor_ratio of it, clamped to [0, 1].

    Source: memory-lancedb-pro, applyDecayBoost; there the ratio only stands in for a multiplier that is no number.
    """

    decay: Decay
    floor_ratio: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.floor_ratio <= 1:
            raise ValueError(f"floor_ratio must be in [0, 1], got {self.floor_ratio}")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        factor = self.decay.multiplier().clip(lower_bound=self.floor_ratio)
        return rescored(frame, pl.col("score") * factor, fallback_ratio=self.floor_ratio)
