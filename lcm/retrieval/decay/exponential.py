"""Exponential decay of age, at a rate for each scope class."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.clock import EPOCH

_SECONDS_PER_MS = 1e-3


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

    def multiplier(self) -> pl.Expr:
        known = pl.when(pl.col("created_at") > EPOCH).then(pl.col("created_at"))
        age_seconds = ((pl.col("asked_at") - known).dt.total_milliseconds() * _SECONDS_PER_MS).fill_null(0.0)
        return (-self._rate() * age_seconds.clip(lower_bound=0.0)).exp()

    def strength(self) -> pl.Expr:
        return self.multiplier()

    def _rate(self) -> pl.Expr:
        if self.session_rate == self.durable_rate == self.global_rate:
            return pl.lit(self.durable_rate)
        whose = pl.col("scope_class")
        return (
            pl.when(whose == "session")
            .then(self.session_rate)
            .when(whose == "durable")
            .then(self.durable_rate)
            .otherwise(self.global_rate)
        )
