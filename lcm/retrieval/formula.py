"""Formulas over the columns of a frame: by Polars where many queries meet, by numpy where one query meets a few rows.

A formula is written once, as a Polars expression. Polars hands every node of it to its threads, some 20 µs each, and
works out again what a formula names twice: a decay over forty rows takes 1.5 ms. So the expression of a single query
is read from its own serialised form, once, into a function of numpy, where equal parts are worked out once. Both give
the same bits: exponentials, logarithms and powers are those of the C library, as Polars has them. What is met in an
expression that is not known here is left to Polars.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.retrieval.formula_columns import Column, Run, UnknownError
from lcm.retrieval.formula_parts import read
from lcm.retrieval.lookup import KeptBeside
from lcm.retrieval.ranking.ordering import is_one_query, taken

_KEPT = 512
"""Formulas that are read and kept."""


def worked_out(frame: pl.DataFrame, formula: pl.Expr, name: str) -> pl.Series:
    """What a formula gives in each row: a column of numbers, Float64."""
    if (found := _by_numpy(frame, formula)) is None:
        return frame.select(formula.cast(pl.Float64).alias(name)).to_series()
    values, nulls = found
    values = _in_rows(values, len(frame))
    if nulls is None or not np.any(nulls):
        return pl.Series(name, values)
    told = zip(values.tolist(), np.broadcast_to(nulls, len(frame)).tolist(), strict=True)
    return pl.Series(name, [None if null else value for value, null in told], pl.Float64)


def values_of(
    frame: pl.DataFrame, formula: pl.Expr, rows: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.float64]:
    """What a formula gives in each row, no number where it gives nothing.

    Args:
        rows: the places of those that are meant, as if the frame had no others; None = all.
    """
    if (found := _by_numpy(frame, formula, rows)) is None:
        meant = frame if rows is None else taken(frame, rows)
        return meant.select(formula.cast(pl.Float64)).to_series().to_numpy()
    values, nulls = found
    values = _in_rows(values, len(frame) if rows is None else len(rows))
    return values if nulls is None else np.where(nulls, math.nan, values)


def _in_rows(values: Any, count: int) -> npt.NDArray[np.float64]:
    if isinstance(values, np.ndarray) and values.ndim:
        return values.astype(np.float64, copy=False)
    return np.full(count, values, np.float64)


def filtered(frame: pl.DataFrame, formula: pl.Expr) -> pl.DataFrame:
    """The rows where a formula holds; the frame itself where that is every row."""
    if (found := _by_numpy(frame, formula)) is None:
        return frame.filter(formula)
    holds, nulls = found
    if nulls is not None:
        holds = holds & ~nulls
    return kept_rows(frame, np.broadcast_to(holds, len(frame)))


def kept_rows(frame: pl.DataFrame, is_kept: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Some rows; the frame itself where they are all."""
    count = int(np.count_nonzero(is_kept))
    if is_kept[:count].all():  # of rows in order those that score enough: no thread need be woken
        return frame if count == len(frame) else frame.head(count)
    return taken(frame, np.flatnonzero(is_kept))


def beside(frame: pl.DataFrame, columns: Iterable[pl.Series]) -> pl.DataFrame:
    """`with_columns` of columns that are there: without a plan, a fifth of the time."""
    whole, names = frame.clone(), frame.columns
    for column in columns:
        if column.name in names:
            whole.replace_column(names.index(column.name), column)
        else:
            whole.insert_column(len(names), column)
            names.append(column.name)
    return whole


def columns_of(names: Sequence[str], values: npt.NDArray[np.float64]) -> list[pl.Series]:
    """Columns of the rows of an array: parts of one series, for making one takes as long as cutting off ten.

    Args:
        values: shape (names, rows).
    """
    whole, count = pl.Series(np.ascontiguousarray(values).reshape(-1)), values.shape[1]
    return [whole.slice(number * count, count).alias(name) for number, name in enumerate(names)]


def numbers_of(column: pl.Series, missing: float = math.nan) -> npt.NDArray[np.float64]:
    """A column of numbers in double precision.

    Args:
        missing: stands where there is none.
    """
    values: npt.NDArray[np.float64] = (column if column.dtype == pl.Float64 else column.cast(pl.Float64)).to_numpy()
    if not column.null_count() or math.isnan(missing):
        return values
    return np.where(nulls_of(column), missing, values)


def nulls_of(column: pl.Series) -> npt.NDArray[np.bool_]:
    """Where a column of numbers has none."""
    found: npt.NDArray[np.bool_] = np.isnan(numbers_of(column))  # an expression is planned
    if np.count_nonzero(found) == column.null_count():
        return found
    return column.is_null().to_numpy()


def _by_numpy(frame: pl.DataFrame, formula: pl.Expr, rows: npt.NDArray[np.int64] | None = None) -> Column | None:
    """None where Polars must do it: of several queries, of no rows, and of what is not known here."""
    if not is_one_query(frame) or (rows is not None and not len(rows)):
        return None
    if (part := _part_of(formula)) is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return part(Run(frame, rows))
    except UnknownError:
        return None


_part_of = KeptBeside(read, _KEPT)
"""A formula must be built once and kept: one that is built for each query is read for each, slower than Polars is."""
