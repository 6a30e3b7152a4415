"""A bonus for what is new."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.stages.clamp import rescored


@dataclass(frozen=True, slots=True)
class RecencyBoost:
    """score + weight exp(-age / half_life_days), clamped to [0, 1].

    In spite of its name the half-life is the age at which 1/e of the bonus is left, as in the original. The age of a
    document without a known time is 0.

    Source: memory-lancedb-pro, applyRecencyBoost.
    """

    half_life_days: float = 14.0
    """0: no bonus."""
    weight: float = 0.1
    """The bonus at age 0; 0: no bonus; below 0: what is new loses that much."""
    clamp_future: bool = False
    """What lies in the future is 0 days old. The original gives it a negative age, and so more than the bonus."""

    def __post_init__(self) -> None:
        check_range(self, "half_life_days", ge=0)
        check_range(self, "weight")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if self.half_life_days == 0 or self.weight == 0:
            return frame
        return rescored(frame, self._boosted, fallback_ratio=1.0)

    def _boosted(self, columns: Columns) -> Numbers:
        age_days = columns.days_old(clamp_future=self.clamp_future)
        return columns.numbers("score") + self.weight * np.exp(-age_days / self.half_life_days)
