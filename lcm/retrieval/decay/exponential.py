"""Exponential decay of age, at a rate for each scope class."""

from dataclasses import dataclass

import numpy as np

from lcm.checks import check_range
from lcm.protocols.columns import Columns, Numbers

_DAY_SECONDS = 86_400


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
    def reads(self) -> tuple[str, ...]:
        return ("created_at",) if self._has_one_rate else ("created_at", "scope_class")

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
