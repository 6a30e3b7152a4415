"""Formulas over the columns of a frame: by Polars where many queries meet, by numpy where one query meets a few rows.

A formula is written once, as a Polars expression. Polars hands every node of it to its threads, some 20 µs each, and
works out again what a formula names twice: a decay over forty rows takes 1.5 ms. So the expression of a single query
is read from its own serialised form, once, into a list of numpy steps, where equal parts are one step. Both give the
same bits: exponentials, logarithms and powers are those of the C library, as Polars has them. What is met in an
expression that is not known here is left to Polars.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.retrieval.lookup import KeptBeside
from lcm.retrieval.ranking.ordering import is_one_query

Values = npt.NDArray[Any]
_KEPT = 512
"""Formulas whose steps are kept."""
_TRUE_NULL = np.True_


class _Column(NamedTuple):
    """What a part of a formula is in each row, or in all of them."""

    values: Any
    nulls: Any = None
    """Where there is no value; None = nowhere."""


class _UnknownError(Exception):
    """Something that only Polars can work out."""


_Step = Callable[..., _Column]
_Steps = Sequence[tuple[_Step | _Column, tuple[int, ...]]]
"""Each takes what some of those before it gave, a column the frame; a literal is there already."""


def worked_out(frame: pl.DataFrame, formula: pl.Expr, name: str) -> pl.Series:
    """What a formula gives in each row: a column of numbers, Float64."""
    if (found := _by_numpy(frame, formula)) is not None:
        values = np.broadcast_to(np.asarray(found.values, np.float64), len(frame))
        if found.nulls is None or not np.any(found.nulls):
            return pl.Series(name, values)
        nulls = np.broadcast_to(found.nulls, len(frame))
        told = zip(values.tolist(), nulls.tolist(), strict=True)
        return pl.Series(name, [None if null else value for value, null in told], pl.Float64)
    return frame.select(formula.cast(pl.Float64).alias(name)).to_series()


def filtered(frame: pl.DataFrame, formula: pl.Expr) -> pl.DataFrame:
    """The rows where a formula holds; the frame itself where that is every row."""
    if (found := _by_numpy(frame, formula)) is None:
        return frame.filter(formula)
    holds = np.broadcast_to(found.values, len(frame))
    return kept_rows(frame, holds if found.nulls is None else holds & ~found.nulls)


def kept_rows(frame: pl.DataFrame, is_kept: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Some rows; the frame itself where they are all."""
    return frame if is_kept.all() else frame[np.flatnonzero(is_kept)]


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


def _by_numpy(frame: pl.DataFrame, formula: pl.Expr) -> _Column | None:
    """None where Polars must do it: of several queries, and of what is not known here."""
    if not is_one_query(frame):
        return None
    steps = _steps_of(formula)
    if steps is None:
        return None
    found: list[_Column] = []
    try:
        with np.errstate(all="ignore"):
            for step, takes in steps:
                if isinstance(step, _Column):
                    found.append(step)
                else:
                    found.append(step(*[found[place] for place in takes]) if takes else step(frame))
    except _UnknownError:
        return None
    return found[-1]


def _read(formula: pl.Expr) -> _Steps | None:
    steps: list[tuple[_Step | _Column, tuple[int, ...]]] = []
    places: dict[str, int] = {}

    def place_of(node: Any) -> int:
        key = json.dumps(node, sort_keys=True)
        if key not in places:
            step, parts = _step_of(node)
            takes = tuple(place_of(part) for part in parts)
            places[key] = len(steps)
            steps.append((step, takes))
        return places[key]

    try:
        place_of(json.loads(formula.meta.serialize(format="json")))
    except (_UnknownError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
        return None
    return steps


_steps_of = KeptBeside(_read, _KEPT)
"""A formula must be built once and kept: one that is built for each query is read for each, slower than Polars is."""


def _step_of(node: Any) -> tuple[_Step | _Column, Sequence[Any]]:
    """What a node does, and the nodes that it takes."""
    ((kind, held),) = node.items()
    if kind == "Column":
        return _column(held), ()
    if kind == "Literal":
        return _literal(held), ()
    if kind == "BinaryExpr":
        return _BINARY[held["op"]], (held["left"], held["right"])
    if kind == "Ternary":
        return _chosen, (held["predicate"], held["truthy"], held["falsy"])
    if kind == "Cast" and held["dtype"] == {"Literal": "Float64"}:
        return lambda one: _Column(np.asarray(one.values, np.float64), one.nulls), (held["expr"],)
    if kind == "Over" and held["partition_by"] == [{"Column": "query_id"}]:  # the query is the only one
        ((of_all, taken),) = held["function"]["Agg"].items()
        return _of_all(_AGGREGATES[of_all]), (taken["input"],)
    if kind == "Function":
        return _function(held["function"]), held["input"]
    raise _UnknownError


def _column(name: str) -> _Step:
    def step(frame: pl.DataFrame) -> _Column:
        column = frame[name]
        dtype = column.dtype
        if dtype.is_numeric() or dtype == pl.Boolean:
            if not column.null_count():
                return _Column(column.to_numpy())
            told = column.to_list()
            filler = 0 if dtype.is_integer() or dtype == pl.Boolean else 0.0
            values = np.array([filler if value is None else value for value in told])
            return _Column(values, np.array([value is None for value in told]))
        if dtype == pl.Datetime("ms", "UTC"):
            instants = column.to_numpy().view(np.int64)
            return _Column(instants, instants == np.iinfo(np.int64).min if column.null_count() else None)
        if isinstance(dtype, pl.String | pl.Enum):
            told = column.to_list()
            nulls = np.array([value is None for value in told]) if column.null_count() else None
            return _Column(np.array(told, object), nulls)
        raise _UnknownError

    return step


def _literal(held: Any) -> _Column:
    ((kind, value),) = held.items()
    if kind in ("Dyn", "Scalar"):
        if value == {"Null": "Null"}:
            return _Column(0, _TRUE_NULL)
        ((dtype, number),) = value.items()
        if dtype in ("Float", "Float64", "Int", "Int32", "Int64", "Boolean"):
            return _Column(number)
        if dtype == "String":
            return _Column(number)
        if dtype == "Datetime" and number[1] == "Microseconds" and not number[0] % 1000:
            return _Column(number[0] // 1000)
    raise _UnknownError


def _nulls(one: _Column, other: _Column) -> Any:
    if one.nulls is None or other.nulls is None:
        return one.nulls if other.nulls is None else other.nulls
    return one.nulls | other.nulls


def _plainly(work: Callable[[Any], Any]) -> _Step:
    """What gives nothing where its part has nothing."""
    return lambda one: _Column(work(one.values), one.nulls)


def _of_both(work: Callable[[Any, Any], Any]) -> _Step:
    """What gives nothing where one of its parts has nothing."""
    return lambda one, other: _Column(work(one.values, other.values), _nulls(one, other))


def _is_nan(values: Any) -> Any:
    if isinstance(values, float):
        return values != values
    return np.isnan(values) if isinstance(values, np.ndarray) and values.dtype.kind == "f" else False


def _at_least(one: Any, other: Any) -> Any:
    """What is no number stands above all numbers."""
    above, beyond = _is_nan(one), _is_nan(other)
    return (one >= other) | above if above is not False or beyond is not False else one >= other


def _above(one: Any, other: Any) -> Any:
    above, beyond = _is_nan(one), _is_nan(other)
    if above is False and beyond is False:
        return one > other
    return (one > other) | (above & ~np.asarray(beyond))


def _equal(one: Any, other: Any) -> Any:
    above, beyond = _is_nan(one), _is_nan(other)
    return one == other if above is False or beyond is False else (one == other) | (above & beyond)


def _divided(one: Any, other: Any) -> Any:
    """As Polars does it: a column is multiplied by what a number goes into 1, unless it has one row."""
    if isinstance(one, np.ndarray) and isinstance(other, int | float) and len(one) > 1 and other:
        return one * (1.0 / other)
    return np.true_divide(one, other)


def _either(one: _Column, other: _Column) -> _Column:
    if one.nulls is None and other.nulls is None:
        return _Column(one.values | other.values)
    holds = np.zeros((), np.bool_)
    for part in (one, other):
        holds = holds | (part.values if part.nulls is None else part.values & ~part.nulls)
    return _Column(holds, _nulls(one, other) & ~holds)


def _chosen(predicate: _Column, truthy: _Column, falsy: _Column) -> _Column:
    holds = predicate.values if predicate.nulls is None else predicate.values & ~predicate.nulls
    values = np.where(holds, truthy.values, falsy.values)
    if truthy.nulls is None and falsy.nulls is None:
        return _Column(values)
    of_each = (False if one.nulls is None else one.nulls for one in (truthy, falsy))
    return _Column(values, np.where(holds, *of_each))


def _filled(one: _Column, *others: _Column) -> _Column:
    """The first that there is."""
    for other in others:
        if one.nulls is None:
            break
        values = np.where(one.nulls, other.values, one.values)
        one = _Column(values, None if other.nulls is None else one.nulls & other.nulls)
    return one


def _of_all(pick: np.ufunc) -> _Step:
    def step(one: _Column) -> _Column:
        values = np.atleast_1d(one.values)
        if one.nulls is not None:
            values = values[~np.broadcast_to(one.nulls, values.shape)]
        if not len(values):
            return _Column(0, _TRUE_NULL)
        return _Column(np.full(np.shape(one.values), pick.reduce(values)))

    return step


def _by_c(work: Callable[..., float]) -> Callable[..., Any]:
    """Of each number, as the C library has it: numpy's own may differ in the last bit."""

    def step(*columns: Any) -> Any:
        try:
            if not any(isinstance(one, np.ndarray) for one in columns):
                return work(*columns)
            rows = columns if len(columns) == 1 else np.broadcast_arrays(*columns)
            return np.array(list(map(work, *(one.tolist() for one in rows))), np.float64)
        except (ValueError, OverflowError):
            raise _UnknownError from None

    return step


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, np.ndarray):
        raise _UnknownError  # Polars has ways of its own for a square, a root ...
    return _by_c(math.pow)(base, exponent)


def _log(one: _Column, base: _Column) -> _Column:
    logarithms = _by_c(math.log)(one.values)
    return _Column(logarithms if base.values == math.e else logarithms / math.log(base.values), one.nulls)


def _extreme(pick: Callable[..., Any]) -> _Step:
    def step(*parts: _Column) -> _Column:
        if any(part.nulls is not None and np.any(part.nulls) for part in parts):
            raise _UnknownError
        found = parts[0].values
        for part in parts[1:]:
            found = pick(found, part.values)
        return _Column(found)

    return step


def _clip(*, has_min: bool, has_max: bool) -> _Step:
    def step(one: _Column, *bounds: _Column) -> _Column:
        values = one.values
        if has_min:
            values = np.maximum(values, bounds[0].values)
        if has_max:
            values = np.minimum(values, bounds[-1].values)
        return _Column(values, one.nulls)

    return step


def _function(held: Any) -> _Step:
    if isinstance(held, str):
        return _FUNCTIONS[held]
    ((kind, how),) = held.items()
    if kind == "Clip":
        return _clip(**how)
    if kind == "Boolean":
        return _CLAIMS[how]
    if held == {"TemporalExpr": {"TotalMilliseconds": {"fractional": False}}}:
        return lambda one: one
    if held == {"Pow": "Generic"}:
        return _of_both(_power)
    raise _UnknownError


_BINARY: dict[str, _Step] = {
    "Plus": _of_both(lambda one, other: one + other),
    "Minus": _of_both(lambda one, other: one - other),
    "Multiply": _of_both(lambda one, other: one * other),
    "TrueDivide": _of_both(_divided),
    "Divide": _of_both(_divided),
    "GtEq": _of_both(_at_least),
    "LtEq": _of_both(lambda one, other: _at_least(other, one)),
    "Gt": _of_both(_above),
    "Lt": _of_both(lambda one, other: _above(other, one)),
    "Eq": _of_both(_equal),
    "Or": _either,
}
_AGGREGATES = {"Max": np.fmax, "Min": np.fmin}
_FUNCTIONS: dict[str, _Step] = {
    "Exp": _plainly(_by_c(math.exp)),
    "Log": _log,
    "Log1p": _plainly(_by_c(math.log1p)),
    "Negate": _plainly(lambda one: -one),
    "FillNull": _filled,
    "Coalesce": _filled,
    "MaxHorizontal": _extreme(np.fmax),
    "MinHorizontal": _extreme(np.fmin),
}
_CLAIMS: dict[str, _Step] = {
    "IsFinite": _plainly(np.isfinite),
    "IsNotNan": _plainly(lambda one: ~np.asarray(_is_nan(one))),
    "IsNull": lambda one: _Column(np.False_ if one.nulls is None else one.nulls),
    "IsNotNull": lambda one: _Column(np.True_ if one.nulls is None else ~one.nulls),
}
