"""Ages in days, as expressions over instants and `asked_at`."""

import polars as pl

from lcm.clock import EPOCH

_DAYS_PER_MS = 1 / 86_400_000


def days_since(instant: pl.Expr) -> pl.Expr:
    """Days from an instant to `asked_at`: negative where it lies in the future, null where it is unknown."""
    return days_between(instant, pl.col("asked_at"))


def days_between(earlier: pl.Expr, later: pl.Expr) -> pl.Expr:
    """Days from one instant to another; null where either is unknown."""
    # Not divided: the last digit of a Polars column divided by a constant depends on how many rows there are.
    return (later - earlier).dt.total_milliseconds() * _DAYS_PER_MS


def days_old(*, clamp_future: bool) -> pl.Expr:
    """Days since `created_at`: 0 where no time is known, which a transcript without times stores as 1970.

    Args:
        clamp_future: take what lies in the future as 0 days old; without it, its age is negative.
    """
    known = pl.when(pl.col("created_at") > EPOCH).then(pl.col("created_at"))
    age = days_since(known).fill_null(0.0)
    return age.clip(lower_bound=0.0) if clamp_future else age
