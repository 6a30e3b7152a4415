"""The columns of rows as arrays: what formulas are functions of."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

DAY_MS = 86_400_000

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


class Columns:
    """The columns of some rows of a frame as arrays, a value a row.

    A formula is a function of these: the same one for the rows of one query and of a thousand.
    """

    __slots__ = ("_frame", "_rows")

    def __init__(self, frame: pl.DataFrame, rows: npt.NDArray[np.int64] | None = None) -> None:
        """
        Args:
            rows: the places of the rows that are meant; None = all.
        """
        self._frame, self._rows = frame, rows

    def __len__(self) -> int:
        return len(self._frame if self._rows is None else self._rows)

    def numbers(self, name: str, missing: float = math.nan) -> Numbers:
        """A column of numbers, or of instants as milliseconds since 1970.

        Args:
            missing: stands where there is none.
        Raises:
            polars.exceptions.ColumnNotFoundError: if there is no such column.
        """
        return self._of_rows(numbers_of(self._frame.get_column(name), missing))

    def are_missing(self, name: str) -> Truths:
        """Where a column has nothing; a NaN is something."""
        return self._of_rows(_nulls(self._frame.get_column(name)))

    def are(self, name: str, *words: str) -> Truths:
        """Where a column has one of some words."""
        column, found = self._frame.get_column(name), np.zeros(len(self._frame), np.bool_)
        for word in words:
            found |= (column == word).to_numpy() == True  # noqa: E712  # of a column with nulls an array of objects
        return self._of_rows(found)

    def days_since(self, instant: str) -> Numbers:
        """Days from an instant to `asked_at`: below 0 where it lies in the future, NaN where it is unknown."""
        return (self.numbers("asked_at") - self.numbers(instant)) / DAY_MS

    def days_old(self, *, clamp_future: bool) -> Numbers:
        """Days since `created_at`: 0 where no time is known, which a transcript without times stores as 1970.

        Args:
            clamp_future: take what lies in the future as 0 days old; without it, its age is negative.
        """
        age = np.where(self.numbers("created_at") > 0, self.days_since("created_at"), 0.0)
        return np.maximum(age, 0.0) if clamp_future else age

    def _of_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self._rows is None else values[self._rows]


def numbers_of(column: pl.Series, missing: float = math.nan) -> Numbers:
    """A column of numbers in double precision, or of instants as milliseconds since 1970.

    Args:
        missing: stands where there is none.
    """
    values: Numbers = (column if column.dtype == pl.Float64 else column.cast(pl.Float64)).to_numpy()
    if math.isnan(missing) or not column.has_nulls():
        return values
    are_none = np.isnan(values)
    if np.count_nonzero(are_none) > column.null_count():
        are_none = _nulls(column)
    return np.where(are_none, missing, values)


def _nulls(column: pl.Series) -> Truths:
    if not column.has_nulls():
        return np.zeros(len(column), np.bool_)
    return column.is_null().to_numpy()
