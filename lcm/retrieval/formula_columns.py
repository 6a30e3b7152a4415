"""What a formula is made of: literals, and the columns of a frame at the rows of one query."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Column = tuple[Any, Any]
"""What a part of a formula is, an array with a value a row, of words a list, or one value of all rows; and where there
is none: an array, True = in every row, None = in no row."""
_TRUE = np.True_


class UnknownError(Exception):
    """Something that only Polars can work out."""


class Run:
    """A formula worked out once: over which rows, and what parts came to that stand in it several times."""

    __slots__ = ("found", "frame", "places", "rows")

    def __init__(self, frame: pl.DataFrame, places: npt.NDArray[np.int64] | None) -> None:
        """
        Args:
            places: of the rows that are meant; None = all.
        """
        self.frame, self.places = frame, places
        self.rows = len(frame) if places is None else len(places)
        self.found: dict[str, Column] = {}


Part = Callable[[Run], Column]


def literal_of(held: Any) -> Column:
    """What a literal of a serialised expression stands for."""
    ((kind, value),) = held.items()
    if kind in ("Dyn", "Scalar"):
        if value == {"Null": "Null"}:
            return 0, _TRUE
        ((dtype, number),) = value.items()
        if dtype in ("Float", "Float64", "Int", "Int32", "Int64", "Boolean", "String"):
            return number, None
        if dtype == "Datetime" and number[1] == "Microseconds" and not number[0] % 1000:
            return number[0] // 1000, None
    raise UnknownError


def column_of(name: str) -> Part:
    """Reads a column of the rows of a run."""

    def part(run: Run) -> Column:
        column = run.frame.get_column(name)
        dtype = column.dtype
        kind = type(dtype)
        if kind in _OF_WORDS:
            return _words(column.to_list(), run)
        if kind is pl.Datetime and dtype == _INSTANT:
            instants = column.to_numpy().view(np.int64)
            return _numbers(instants, instants == _NO_INSTANT if column.has_nulls() else None, run)
        if kind not in _OF_NUMBERS:
            raise UnknownError
        if not column.has_nulls():
            return _numbers(column.to_numpy(), None, run)
        if column.null_count() == len(column):
            return 0.0, _TRUE
        filler = 0.0 if kind in _OF_FRACTIONS else 0
        told = column.to_list()
        values = np.array([filler if value is None else value for value in told])
        return _numbers(values, np.array([value is None for value in told]), run)

    return part


_OF_WORDS = {pl.String, pl.Enum}
_OF_FRACTIONS = {pl.Float32, pl.Float64}
_OF_NUMBERS = _OF_FRACTIONS | {
    pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64
}  # fmt: skip
_INSTANT = pl.Datetime("ms", "UTC")
_NO_INSTANT = np.iinfo(np.int64).min


def _words(told: list[str | None], run: Run) -> Column:
    if run.places is not None:
        told = [told[place] for place in run.places.tolist()]
    first = told[0]
    if told[-1] == first and told.count(first) == len(told):
        return (first, None) if first is not None else ("", _TRUE)
    return told, np.array([value is None for value in told]) if None in told else None


def _numbers(values: Any, nulls: Any, run: Run) -> Column:
    """Of equal numbers one; compared by their bits, for 0 equals -0."""
    if run.places is not None:
        values, nulls = values[run.places], None if nulls is None else nulls[run.places]
    if nulls is None and values.itemsize == _WORD:
        bits = values.view(np.int64)
        if bits[0] == bits[-1] and not np.count_nonzero(bits != bits[0]):
            return values[0], None
    return values, nulls


_WORD = 8
