"""Age as a factor, slowed down by use."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.stages.clamp import rescored


@dataclass(frozen=True, slots=True)
class TimeDecay:
    """score (floor_ratio + (1 - floor_ratio) exp(-age / H)), clamped to [0, 1].

    H is half_life_days, for a dynamic document divided by dynamic_divisor, lengthened by use: see
    `effective_half_life`. In spite of its name the half-life is the age at which 1/e of what can be lost is left, as
    in the original. The age of a document without a known time is 0.

    Source: memory-lancedb-pro, applyTimeDecay.
    """

    half_life_days: float = 60.0
    """0: no decay."""
    floor_ratio: float = 0.5
    """What is left of the score in the end."""
    dynamic_divisor: float = 3.0
    reinforcement_factor: float = 0.5
    """How much accesses lengthen the half-life; 0: not at all."""
    max_half_life_multiplier: float = 3.0
    """The longest half-life of an accessed document, in half-lives."""
    access_half_life_days: float = 30.0
    """In which half of the accesses are forgotten."""
    clamp_future: bool = False
    """What lies in the future is 0 days old. The original gives it a negative age, and so a factor above 1."""
    spared_kinds: Sequence[str] = ()
    """Kinds of documents that keep their score."""
    reads = ("access_count", "created_at", "kind", "last_accessed_at", "temporal_type")

    def __post_init__(self) -> None:
        check_range(self, "half_life_days", "reinforcement_factor", ge=0)
        check_range(self, "dynamic_divisor", "max_half_life_multiplier", "access_half_life_days", gt=0)
        check_range(self, "floor_ratio", ge=0, le=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if self.half_life_days == 0:
            return frame
        return rescored(frame, self._decayed, self.floor_ratio, self.spared_kinds)

    def _decayed(self, columns: Columns) -> Numbers:
        days = self.half_life_days
        half_life_days = effective_half_life(
            columns,
            np.where(columns.are("temporal_type", "dynamic"), days / self.dynamic_divisor, days),
            self.reinforcement_factor,
            self.max_half_life_multiplier,
            self.access_half_life_days,
        )
        age_days, floor = columns.days_old(clamp_future=self.clamp_future), self.floor_ratio
        return columns.numbers("score") * (floor + (1.0 - floor) * np.exp(-age_days / half_life_days))


def effective_half_life(
    columns: Columns,
    base_days: Numbers,
    reinforcement_factor: float,
    max_multiplier: float,
    access_half_life_days: float = 30.0,
) -> Numbers:
    """The half-life in days of a document that was accessed n times.

    base (1 + reinforcement_factor ln(1 + n 2^(-d / access_half_life_days))) with d the days since the last access,
    at most base max_multiplier; without access, or with a factor of 0, it is base.

    Source: memory-lancedb-pro, computeEffectiveHalfLife.
    """
    if reinforcement_factor == 0:
        return base_days
    accesses = columns.numbers("access_count", missing=0.0)
    idle_days = np.maximum(columns.days_since("last_accessed_at"), 0.0)
    remembered = np.where(np.isnan(idle_days), 0.0, accesses * np.exp2(-idle_days / access_half_life_days))
    longer = base_days + base_days * reinforcement_factor * np.log1p(remembered)
    return np.where(accesses > 0, np.fmin(longer, base_days * max_multiplier), base_days)
