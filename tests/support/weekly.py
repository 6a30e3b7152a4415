"""A few of many cases: others each week, so that in time all are tried."""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TypeVar

T = TypeVar("T")


def of_this_week(cases: Sequence[T], count: int, day: date | None = None) -> list[T]:
    """Return so many cases: the next ones of a fixed shuffled order, which goes on where the week before stopped."""
    week = (day or datetime.now(tz=UTC).date()).toordinal() // 7
    order = random.Random(0).sample(cases, len(cases))
    return [order[place % len(order)] for place in range(week * count, week * count + min(count, len(order)))]
