"""How alive a document still is, by its age and use."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lcm.checks import check_range, check_weights
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import DAY_MS, Columns, Numbers, Truths
from lcm.records.document import DEFAULT_RATING

_DAY_SECONDS = 86_400
_LARGE = 1e300
"""Finite, so that no term cancels another to what is no number."""


@dataclass(frozen=True, slots=True)
class NoDecay:
    """A document is as alive after years as on its first day."""

    contract = Contract(is_off=True, reads=())

    def multiplier(self, columns: Columns) -> Numbers:
        return np.ones(len(columns))

    def strength(self, columns: Columns) -> Numbers:
        return np.ones(len(columns))


@dataclass(frozen=True, slots=True)
class Exponential:
    """multiplier = strength = exp(-rate age), the age in seconds from `created_at` to `asked_at`, the rate by
    `scope_class`; a document halves every ln 2 / rate seconds.

    In the future, or where no time is known, which a transcript without times stores as 1970, the age is 0.

    Source: libravdb memory 1.3.5, mathematical reference, section 2.
    """

    session_rate: float = 1e-4
    """Per second: 1.9 hours to the half."""
    durable_rate: float = 1e-5
    """19 hours."""
    global_rate: float = 2e-6
    """4 days."""

    def __post_init__(self) -> None:
        check_range(self, "session_rate", "durable_rate", "global_rate", ge=0)

    @property
    def contract(self) -> Contract:
        return Contract(reads=("created_at",) if self._has_one_rate else ("created_at", "scope_class"))

    def multiplier(self, columns: Columns) -> Numbers:
        age_seconds = columns.days_old(clamp_future=True) * _DAY_SECONDS
        return np.exp(-self._rate(columns) * age_seconds)

    def strength(self, columns: Columns) -> Numbers:
        return self.multiplier(columns)

    @property
    def _has_one_rate(self) -> bool:
        return self.session_rate == self.durable_rate == self.global_rate

    def _rate(self, columns: Columns) -> Numbers | float:
        if self._has_one_rate:
            return self.durable_rate
        rate = np.where(columns.are("scope_class", "durable"), self.durable_rate, self.global_rate)
        return np.where(columns.are("scope_class", "session"), self.session_rate, rate)


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

    @property
    def contract(self) -> Contract:
        """Of what counts for nothing the columns are not read."""
        names = {"decay_tier"}
        if self.recency_weight or self.recency_lifts:
            names |= {"access_count", "created_at", "importance", "last_accessed_at", "temporal_type"}
        if self.frequency_weight:
            names |= {"access_count", "created_at", "last_accessed_at"}
        if self.intrinsic_weight:
            names |= {"importance", "confidence"}
        return Contract(reads=tuple(sorted(names)))

    @np.errstate(all="ignore")
    def recency(self, columns: Columns) -> Numbers:
        """R, in [0, 1]."""
        days = self.recency_half_life_days
        half_life_days = np.where(columns.are("temporal_type", "dynamic"), days / self.dynamic_divisor, days)
        half_life_days *= np.exp(self.importance_modulation * _rating(columns, "importance"))
        beta = _by_tier(columns, self.beta_core, self.beta_working, self.beta_peripheral)
        idle_days = (columns.numbers("asked_at") - _last_active(columns)) / DAY_MS
        idle_days = np.where(idle_days > 0, idle_days, 0.0)
        # Bounded, for an importance far below 0 makes a half-life of 0, and 0 days times infinity is no number.
        rate = np.minimum(math.log(2) / half_life_days, _LARGE)
        lost: Numbers = rate * np.minimum(idle_days**beta, _LARGE)
        return np.exp(-lost)

    @np.errstate(all="ignore")
    def frequency(self, columns: Columns) -> Numbers:
        """F, in [0, 1)."""
        accesses = columns.numbers("access_count", missing=0.0)
        base = 1.0 - np.minimum(np.exp(-accesses / self.access_saturation), _LARGE)
        # Not a difference of two ages: its last digit would depend on when it is asked.
        span_days = (_last_active(columns) - columns.numbers("created_at")) / DAY_MS
        gap_days = np.where(span_days > 1, span_days, 1.0) / np.maximum(accesses - 1.0, 1.0)
        repeated = base * (0.5 + 0.5 * np.exp(-gap_days / self.access_gap_days))
        return np.where(accesses <= 1, base, repeated)

    @np.errstate(all="ignore")
    def intrinsic(self, columns: Columns) -> Numbers:
        """I."""
        return np.clip(_rating(columns, "importance") * _rating(columns, "confidence"), -_LARGE, _LARGE)

    def strength(self, columns: Columns) -> Numbers:
        weighted = (
            (self.recency_weight, self.recency),
            (self.frequency_weight, self.frequency),
            (self.intrinsic_weight, self.intrinsic),
        )
        strength = np.zeros(len(columns))
        for weight, term in weighted:
            if weight > 0:
                strength += weight * term(columns)
        return strength

    def multiplier(self, columns: Columns) -> Numbers:
        floor = _by_tier(columns, self.floor_core, self.floor_working, self.floor_peripheral)
        alive = np.fmax(floor, self.strength(columns))
        if self.recency_lifts:
            alive = np.fmax(alive, self.recency(columns))
        least = self.search_boost_min
        return np.clip(least + (1.0 - least) * alive, least, 1.0)

    def is_stale(self, columns: Columns) -> Truths:
        return self.strength(columns) < self.stale_threshold


def _last_active(columns: Columns) -> Numbers:
    """When a document was accessed last, or created where it never was."""
    accessed, created = columns.numbers("last_accessed_at"), columns.numbers("created_at")
    return np.where((columns.numbers("access_count") > 0) & ~np.isnan(accessed), accessed, created)


def _rating(columns: Columns, name: str) -> Numbers:
    given = columns.numbers(name)
    return np.where(np.isfinite(given), given, DEFAULT_RATING)


def _by_tier(columns: Columns, core: float, working: float, peripheral: float) -> Numbers:
    others = np.where(columns.are("decay_tier", "peripheral"), peripheral, working)
    return np.where(columns.are("decay_tier", "core"), core, others)
