"""Age as a factor, slowed down by use."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.decay.age import days_old, days_since
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
    spared_kinds: Sequence[str] = field(default=(), hash=False)
    """Kinds of documents that keep their score."""
    reads = ("access_count", "created_at", "kind", "last_accessed_at", "temporal_type")

    def __post_init__(self) -> None:
        check_range(self, "half_life_days", "reinforcement_factor", ge=0)
        check_range(self, "dynamic_divisor", "max_half_life_multiplier", "access_half_life_days", gt=0)
        check_range(self, "floor_ratio", ge=0, le=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if self.half_life_days == 0:
            return frame
        return rescored(frame, _decayed(self), fallback_ratio=self.floor_ratio, spared_kinds=self.spared_kinds)


def effective_half_life(
    base_days: pl.Expr, reinforcement_factor: float, max_multiplier: float, access_half_life_days: float = 30.0
) -> pl.Expr:
    """The half-life in days of a document that was accessed n times, over its columns and `asked_at`.

    base (1 + reinforcement_factor ln(1 + n 2^(-d / access_half_life_days))) with d the days since the last access,
    at most base max_multiplier; without access, or with a factor of 0, it is base.

    Source: memory-lancedb-pro, computeEffectiveHalfLife.
    """
    if reinforcement_factor == 0:
        return base_days
    accesses = pl.col("access_count").fill_null(0)
    idle_days = days_since(pl.col("last_accessed_at")).clip(lower_bound=0.0)
    remembered = (accesses * (-idle_days * (math.log(2) / access_half_life_days)).exp()).fill_null(0.0)
    longer = pl.min_horizontal(
        base_days + base_days * reinforcement_factor * remembered.log1p(), base_days * max_multiplier
    )
    return pl.when(accesses > 0).then(longer).otherwise(base_days)


@cache
def _decayed(settings: TimeDecay) -> pl.Expr:
    base_days = (
        pl.when(pl.col("temporal_type") == "dynamic")
        .then(settings.half_life_days / settings.dynamic_divisor)
        .otherwise(settings.half_life_days)
    )
    half_life_days = effective_half_life(
        base_days, settings.reinforcement_factor, settings.max_half_life_multiplier, settings.access_half_life_days
    )
    age_days = days_old(clamp_future=settings.clamp_future)
    floor = settings.floor_ratio
    return pl.col("score") * (floor + (1.0 - floor) * (-age_days / half_life_days).exp())
