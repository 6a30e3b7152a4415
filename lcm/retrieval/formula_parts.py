"""A Polars expression read into a function of numpy, part by part, for the rows of one query.

A part is one value where all rows have the same: most live queries meet forty messages of one kind, none of which was
used. Then its step takes a fifth of the time, and of two ways the one that no row goes is not worked out at all.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl

from lcm.retrieval.formula_columns import Column, Part, Run, UnknownError, column_of, literal_of

_TRUE, _FALSE = np.True_, np.False_
Work = Callable[..., Any]


def read(formula: pl.Expr) -> Part | None:
    """The function that gives what a formula gives; None where only Polars can."""
    try:
        root = json.loads(formula.meta.serialize(format="json"))
        return _Reading(root).part(root)
    except (UnknownError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
        return None


class _Reading:
    """Makes the part of each node, one part of equal nodes."""

    def __init__(self, root: Any) -> None:
        self._times: Counter[str] = Counter()
        self._count(root)
        self._parts: dict[str, Part] = {}

    def _count(self, node: Any) -> None:
        key = json.dumps(node, sort_keys=True)
        self._times[key] += 1
        if self._times[key] == 1:
            for taken in _taken(node):
                self._count(taken)

    def part(self, node: Any) -> Part:
        key = json.dumps(node, sort_keys=True)
        if key not in self._parts:
            made = self._made(node)
            self._parts[key] = _once(made, key) if self._times[key] > 1 and "Literal" not in node else made
        return self._parts[key]

    def _made(self, node: Any) -> Part:
        ((kind, held),) = node.items()
        if kind == "Column":
            return column_of(held)
        if kind == "Literal":
            known = literal_of(held)
            return lambda run: known
        parts = [self.part(taken) for taken in _taken(node)]
        if kind == "BinaryExpr":
            is_by_number = _is_literal(held["right"]) and not _is_literal(held["left"])
            if is_by_number and held["op"] in ("TrueDivide", "Divide"):
                return _divided_by_number(*parts)
            return _either(*parts) if held["op"] == "Or" else _of_both(_BINARY[held["op"]], *parts)
        if kind == "Ternary":
            return _chosen(*parts)
        if kind == "Cast" and held["dtype"] == {"Literal": "Float64"}:
            return _of_one(_as_float, *parts)
        if kind == "Over" and held["partition_by"] == [{"Column": "query_id"}]:  # the query is the only one
            return _of_all(_AGGREGATES[next(iter(held["function"]["Agg"]))], *parts)
        if kind == "Function":
            return _function(held["function"], held["input"], parts)
        raise UnknownError


def _taken(node: Any) -> Sequence[Any]:
    """The nodes whose values a node takes."""
    ((kind, held),) = node.items()
    if kind == "BinaryExpr":
        return held["left"], held["right"]
    if kind == "Ternary":
        return held["predicate"], held["truthy"], held["falsy"]
    if kind == "Cast":
        return (held["expr"],)
    if kind == "Over":
        ((_, of_all),) = held["function"]["Agg"].items()
        return (of_all["input"],)
    return held["input"] if kind == "Function" else ()


def _is_literal(node: Any) -> bool:
    """Whether it is one number whatever the rows: Polars does not tell that from a column of equal numbers alone."""
    return "Literal" in node or (bool(taken := _taken(node)) and all(map(_is_literal, taken)))


def _once(part: Part, key: str) -> Part:
    def kept(run: Run) -> Column:
        found = run.found.get(key)
        if found is None:
            found = run.found[key] = part(run)
        return found

    return kept


def _nulls(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    return one | other


def _of_one(work: Work, part: Part) -> Part:
    """What gives nothing where its part has nothing."""

    def made(run: Run) -> Column:
        values, nulls = part(run)
        return work(values), nulls

    return made


def _of_both(work: Work, left: Part, right: Part) -> Part:
    """What gives nothing where one of its parts has nothing."""

    def made(run: Run) -> Column:
        one, no_one = left(run)
        other, no_other = right(run)
        return work(one, other), _nulls(no_one, no_other)

    return made


def _as_float(values: Any) -> Any:
    return values.astype(np.float64) if isinstance(values, np.ndarray) else np.float64(values)


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
    if isinstance(one, list) and isinstance(other, str):
        return np.array([word == other for word in one])
    if isinstance(one, list) or isinstance(other, list):
        raise UnknownError
    above, beyond = _is_nan(one), _is_nan(other)
    return one == other if above is False or beyond is False else (one == other) | (above & beyond)


def _divided_by_number(part: Part, number: Part) -> Part:
    """As Polars divides a column: it is multiplied by what the number goes into 1, unless it has one row."""

    def made(run: Run) -> Column:
        values, nulls = part(run)
        divisor, none = number(run)
        quotients = values * (1.0 / divisor) if run.rows > 1 and divisor else np.true_divide(values, divisor)
        return quotients, _nulls(nulls, none)

    return made


def _either(left: Part, right: Part) -> Part:
    def made(run: Run) -> Column:
        (one, no_one), (other, no_other) = left(run), right(run)
        if no_one is None and no_other is None:
            return one | other, None
        holds = (one if no_one is None else one & ~no_one) | (other if no_other is None else other & ~no_other)
        return holds, _nulls(no_one, no_other) & ~np.asarray(holds)

    return made


def _chosen(predicate: Part, truthy: Part, falsy: Part) -> Part:
    def made(run: Run) -> Column:
        holds, nulls = predicate(run)
        if nulls is not None:
            holds = holds & ~nulls
        if not isinstance(holds, np.ndarray) or not holds.ndim:
            return truthy(run) if holds else falsy(run)
        if (count := np.count_nonzero(holds)) in (0, len(holds)):
            return truthy(run) if count else falsy(run)
        (one, no_one), (other, no_other) = truthy(run), falsy(run)
        if no_other is _TRUE:
            return one, ~holds if no_one is None else ~holds | no_one
        values = np.where(holds, one, other)
        if no_one is None and no_other is None:
            return values, None
        return values, np.where(holds, _FALSE if no_one is None else no_one, _FALSE if no_other is None else no_other)

    return made


def _filled(first: Part, *others: Part) -> Part:
    """The first that there is."""

    def made(run: Run) -> Column:
        values, nulls = first(run)
        for other in others:
            if nulls is None:
                break
            further, none = other(run)
            if isinstance(nulls, np.ndarray) and nulls.ndim:
                values, nulls = np.where(nulls, further, values), None if none is None else nulls & none
            elif nulls:
                values, nulls = further, none
            else:
                nulls = None
        return values, nulls

    return made


def _of_all(pick: np.ufunc, part: Part) -> Part:
    def made(run: Run) -> Column:
        values, nulls = part(run)
        if isinstance(nulls, np.ndarray) and nulls.ndim:
            values = np.broadcast_to(values, nulls.shape)[~nulls]
        elif nulls:
            return 0, _TRUE
        if not isinstance(values, np.ndarray):
            return values, None
        return (pick.reduce(values), None) if len(values) else (0, _TRUE)

    return made


def _by_c(work: Callable[..., float]) -> Work:
    """Of each number, as the C library has it: numpy's own may differ in the last bit."""

    def made(*columns: Any) -> Any:
        try:
            if not any(isinstance(one, np.ndarray) for one in columns):
                return np.float64(work(*columns))
            rows = (one.tolist() if isinstance(one, np.ndarray) else repeat(one) for one in columns)
            return np.array(list(map(work, *rows)), np.float64)
        except (ValueError, OverflowError):
            raise UnknownError from None

    return made


def _extreme(pick: Work, *parts: Part) -> Part:
    def made(run: Run) -> Column:
        found = None
        for part in parts:
            values, nulls = part(run)
            if nulls is not None and np.any(nulls):
                raise UnknownError
            found = values if found is None else pick(found, values)
        return found, None

    return made


def _clipped(has_min: bool, has_max: bool, part: Part, *bounds: Part) -> Part:
    def made(run: Run) -> Column:
        values, nulls = part(run)
        if has_min:
            values = np.maximum(values, bounds[0](run)[0])
        if has_max:
            values = np.minimum(values, bounds[-1](run)[0])
        return values, nulls

    return made


def _told(claim: Callable[[Any], Any], part: Part) -> Part:
    """What is said of whether there is something."""
    return lambda run: (claim(part(run)[1]), None)


def _function(held: Any, inputs: Sequence[Any], parts: Sequence[Part]) -> Part:
    if held in ("FillNull", "Coalesce"):
        return _filled(*parts)
    if held in ("MaxHorizontal", "MinHorizontal"):
        return _extreme(np.fmax if held == "MaxHorizontal" else np.fmin, *parts)
    if held == "Log":
        return _logarithm(*parts)
    if isinstance(held, str):
        return _of_one(_FUNCTIONS[held], *parts)
    ((kind, how),) = held.items()
    if kind == "Clip":
        return _clipped(how["has_min"], how["has_max"], *parts)
    if kind == "Boolean":
        return _told(_TOLD[how], *parts) if how in _TOLD else _of_one(_CLAIMS[how], *parts)
    if held == {"TemporalExpr": {"TotalMilliseconds": {"fractional": False}}}:
        return parts[0]
    if held == {"Pow": "Generic"} and not _is_literal(inputs[1]):  # Polars has ways of its own for a square, a root ...
        return _of_both(_by_c(math.pow), *parts)
    raise UnknownError


def _logarithm(part: Part, base: Part) -> Part:
    natural = _by_c(math.log)

    def made(run: Run) -> Column:
        values, nulls = part(run)
        to, found = base(run)[0], natural(values)
        return found if to == math.e else found / math.log(to), nulls

    return made


_BINARY: Mapping[str, Work] = {
    "Plus": lambda one, other: one + other,
    "Minus": lambda one, other: one - other,
    "Multiply": lambda one, other: one * other,
    "TrueDivide": np.true_divide,
    "Divide": np.true_divide,
    "GtEq": _at_least,
    "LtEq": lambda one, other: _at_least(other, one),
    "Gt": _above,
    "Lt": lambda one, other: _above(other, one),
    "Eq": _equal,
}
_AGGREGATES = {"Max": np.fmax, "Min": np.fmin}
_FUNCTIONS: Mapping[str, Work] = {
    "Exp": _by_c(math.exp),
    "Log1p": _by_c(math.log1p),
    "Negate": lambda one: -one,
}
_CLAIMS: Mapping[str, Work] = {
    "IsFinite": np.isfinite,
    "IsNotNan": lambda one: _TRUE if (is_nan := _is_nan(one)) is False else np.logical_not(is_nan),
}
_TOLD: Mapping[str, Callable[[Any], Any]] = {
    "IsNull": lambda nulls: _FALSE if nulls is None else nulls,
    "IsNotNull": lambda nulls: _TRUE if nulls is None else ~nulls,
}
