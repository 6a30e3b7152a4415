"""Stretched exponential decay of age, with frequency of use and importance: memory-lancedb-pro's decay engine."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import polars as pl

from lcm.checks import check_range, check_weights
from lcm.records.document import DEFAULT_RATING
from lcm.retrieval.decay.age import days_between, days_since
from lcm.retrieval.ranking.sums import in_order

_LARGE = 1e300
"""Finite, so that no term cancels another to what is no number."""


@dataclass(frozen=True, slots=True)
class Weibull:
    """strength = recency_weight R + frequency_weight F + intrinsic_weight I; weights are used as given.

    R = exp(-ln 2 / H d^beta) with d the days since the last access, or since creation where there was none (0 in the
    future), H = recency_half_life_days exp(importance_modulation importance), for a dynamic document divided by
    dynamic_divisor, and beta by decay tier. R is 1/2 after H^(1/beta) days: H itself only where beta is 1.

    F = 1 - exp(-n / access_saturation) for n accesses; from the second on times (1 + exp(-g / access_gap_days)) / 2
    with g the mean days between accesses. I = importance confidence.

    The multiplier is m + (1 - m) max(floor of the tier, strength), m = search_boost_min, within [m, 1].

    An importance or confidence that is no number counts as 0.7, an unknown tier as working.

    Source: memory-lancedb-pro, decay-engine; `recency_lifts` is of its later versions.
    """

    recency_half_life_days: float = 30.0
    recency_weight: float = 0.4
    frequency_weight: float = 0.3
    intrinsic_weight: float = 0.3
    stale_threshold: float = 0.3
    """A document of less strength is stale."""
    search_boost_min: float = 0.3
    importance_modulation: float = 1.5
    beta_core: float = 0.8
    beta_working: float = 1.0
    beta_peripheral: float = 1.3
    floor_core: float = 0.9
    floor_working: float = 0.7
    floor_peripheral: float = 0.5
    dynamic_divisor: float = 3.0
    access_saturation: float = 5.0
    access_gap_days: float = 30.0
    recency_lifts: bool = False
    """The multiplier also counts R as a floor, so that a fresh document is not held back by being unused."""
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {"stale_threshold": {"${measures.staleness}": None}}
    """Setting -> the values of others that leave it without effect."""

    def __post_init__(self) -> None:
        check_range(
            self,
            "recency_half_life_days",
            "beta_core",
            "beta_working",
            "beta_peripheral",
            "dynamic_divisor",
            "access_saturation",
            "access_gap_days",
            gt=0,
        )
        check_range(
            self,
            "recency_weight",
            "frequency_weight",
            "intrinsic_weight",
            "stale_threshold",
            "search_boost_min",
            "floor_core",
            "floor_working",
            "floor_peripheral",
            ge=0,
            le=1,
        )
        check_range(self, "importance_modulation", ge=0)
        check_weights(self, "recency_weight", "frequency_weight", "intrinsic_weight")

    @property
    def acting_unused(self) -> tuple[str, ...] | None:
        """Where working documents that were never used stand on their floor whatever their age and importance, the
        settings by which they do and that act there; None where ages tell."""
        if self.recency_lifts or self.recency_weight + self.intrinsic_weight > self.floor_working:
            return None
        return "floor_working", "search_boost_min", "recency_weight", "intrinsic_weight", "recency_lifts"

    def recency(self) -> pl.Expr:
        """R, in [0, 1]."""
        return _recency(self)

    def frequency(self) -> pl.Expr:
        """F, in [0, 1)."""
        return _frequency(self)

    def intrinsic(self) -> pl.Expr:
        """I."""
        return (_rating("importance") * _rating("confidence")).clip(-_LARGE, _LARGE)

    def strength(self) -> pl.Expr:
        return _strength(self)

    def multiplier(self) -> pl.Expr:
        return _multiplier(self)

    def is_stale(self) -> pl.Expr:
        return self.strength() < self.stale_threshold


@cache
def _recency(settings: Weibull) -> pl.Expr:
    half_life_days = (
        pl.when(pl.col("temporal_type") == "dynamic")
        .then(settings.recency_half_life_days / settings.dynamic_divisor)
        .otherwise(settings.recency_half_life_days)
    ) * (settings.importance_modulation * _rating("importance")).exp()
    beta = _by_tier(settings.beta_core, settings.beta_working, settings.beta_peripheral)
    idle_days = days_since(_last_active()).fill_null(0.0).clip(lower_bound=0.0)
    # Bounded, for an importance far below 0 makes a half-life of 0, and 0 days times infinity is no number.
    rate = (math.log(2) / half_life_days).clip(upper_bound=_LARGE)
    return (-rate * idle_days.pow(beta).clip(upper_bound=_LARGE)).exp()


@cache
def _frequency(settings: Weibull) -> pl.Expr:
    accesses = _accesses().cast(pl.Float64)
    base = 1.0 - (accesses * (-1 / settings.access_saturation)).exp().clip(upper_bound=_LARGE)
    # Not a difference of two ages: its last digit would depend on when it is asked.
    span_days = days_between(pl.col("created_at"), _last_active()).fill_null(0.0).clip(lower_bound=1.0)
    gap_days = span_days / (accesses - 1.0).clip(lower_bound=1.0)
    repeated = base * (0.5 + 0.5 * (gap_days * (-1 / settings.access_gap_days)).exp())
    return pl.when(accesses <= 1).then(base).otherwise(repeated)


@cache
def _strength(settings: Weibull) -> pl.Expr:
    weighted = (
        (settings.recency_weight, settings.recency()),
        (settings.frequency_weight, settings.frequency()),
        (settings.intrinsic_weight, settings.intrinsic()),
    )
    return in_order(weight * term for weight, term in weighted if weight > 0)


@cache
def _multiplier(settings: Weibull) -> pl.Expr:
    floor = _by_tier(settings.floor_core, settings.floor_working, settings.floor_peripheral)
    lifts = [settings.recency()] if settings.recency_lifts else []
    alive = pl.max_horizontal(floor, settings.strength(), *lifts)
    least = settings.search_boost_min
    return (least + (1.0 - least) * alive).clip(least, 1.0)


def _accesses() -> pl.Expr:
    return pl.col("access_count").fill_null(0)


def _last_active() -> pl.Expr:
    accessed = pl.when(_accesses() > 0).then(pl.col("last_accessed_at"))
    return pl.coalesce(accessed, pl.col("created_at"))


def _rating(column: str) -> pl.Expr:
    return pl.when(pl.col(column).is_finite()).then(pl.col(column)).otherwise(DEFAULT_RATING)


def _by_tier(core: float, working: float, peripheral: float) -> pl.Expr:
    tier = pl.col("decay_tier")
    return pl.when(tier == "core").then(core).when(tier == "peripheral").then(peripheral).otherwise(working)
