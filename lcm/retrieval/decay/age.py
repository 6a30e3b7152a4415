"""Ages in days, from instants to `asked_at`."""

import numpy as np

from lcm.protocols.columns import Columns, Numbers

DAY_MS = 86_400_000


def days_since(columns: Columns, instant: str) -> Numbers:
    """Days from an instant to `asked_at`: below 0 where it lies in the future, NaN where it is unknown."""
    return (columns.numbers("asked_at") - columns.numbers(instant)) / DAY_MS


def days_old(columns: Columns, *, clamp_future: bool) -> Numbers:
    """Days since `created_at`: 0 where no time is known, which a transcript without times stores as 1970.

    Args:
        clamp_future: take what lies in the future as 0 days old; without it, its age is negative.
    """
    age = np.where(columns.numbers("created_at") > 0, days_since(columns, "created_at"), 0.0)
    return np.maximum(age, 0.0) if clamp_future else age
