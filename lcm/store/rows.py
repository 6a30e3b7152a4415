"""Rows to frames: a hundred thousand rows in well under a second, a single row in half a millisecond; and the SQL that
all tables share."""

import functools
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from lcm.encoding import INSTANT_FORMAT
from lcm.errors import StoreError

INSTANT = pl.Datetime("ms", "UTC")
LISTED = "IN (SELECT value FROM json_each(?))"
"""What follows a column that is one of the values of a list, which is given as JSON text."""
_FEW = 64
"""Rows that are put together row by row; a column at a time costs more to begin with, and less a row."""
_AT_ONCE = 1 << 12
"""Rows that are held as rows at a time: they take ten times as much memory as in a frame."""


def insertion(table: str, columns: Collection[str], rows: int = 1) -> str:
    """The statement that puts rows, of a value a column, into a table."""
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608 (our own constants)


def add_row(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    """Put one row into a table, inside the caller's transaction."""
    connection.execute(insertion(table, row), tuple(row.values()))


def frame(cursor: sqlite3.Cursor, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Read every row; the query's columns are the schema's, in order.

    Instants arrive as their text form and lists as JSON text.

    Raises:
        StoreError: naming a column with a value that it does not take.
    """
    parts = [_part(cursor, schema)]
    while len(parts[-1]) == _AT_ONCE:
        parts.append(_part(cursor, schema))
    return pl.concat(parts, rechunk=True) if len(parts) > 1 else parts[0]


def _part(cursor: sqlite3.Cursor, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The next rows."""
    rows = cursor.fetchmany(_AT_ONCE)
    if 0 < len(rows) <= _FEW:
        try:
            if (found := _by_rows(rows, tuple(schema.items()))) is not None:
                return found
        except (TypeError, pl.exceptions.PolarsError):
            pass  # by columns it is told which one
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    series = []
    for (name, kind), values in zip(schema.items(), columns, strict=True):
        try:
            series.append(_series(name, values, kind))
        except (TypeError, pl.exceptions.PolarsError) as error:
            store = getattr(cursor.connection, "path", None) or "the store"
            raise StoreError(
                f"{store} holds a {name} that is no {kind}, damaged or written by another program: mend or delete that "
                "row"
            ) from error
    return pl.DataFrame(series)


def _by_rows(rows: Sequence[tuple[object, ...]], schema: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame | None:
    """None where a value is not of its column's kind: Polars would make it fit."""
    stored, kinds, decoded = _row_schema(schema)
    if any(not isinstance(value, kind) for row in rows for value, kind in zip(row, kinds, strict=True)):
        return None
    return pl.DataFrame(rows, stored, orient="row").select(decoded)


@functools.lru_cache(maxsize=64)
def _row_schema(
    schema: tuple[tuple[str, pl.DataType], ...],
) -> tuple[dict[str, pl.DataType], list[Any], list[pl.Expr]]:
    """Of each column: what of it is stored, as what Python has it, and what it becomes."""
    stored = {name: _stored(kind) for name, kind in schema}
    numbers: dict[pl.DataType, Any] = {pl.Int64(): int | None, pl.Float64(): float | int | None}
    return (
        stored,
        [numbers.get(kind, str | None) for kind in stored.values()],
        [_decoded(pl.col(name), kind) for name, kind in schema],
    )


def _stored(kind: pl.DataType) -> pl.DataType:
    if kind == INSTANT or isinstance(kind, pl.List):
        return pl.String()
    return pl.Int64() if kind == pl.Boolean else kind


def _decoded(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    if kind == INSTANT:
        return column.str.to_datetime(INSTANT_FORMAT, time_unit="ms", time_zone="UTC")
    if isinstance(kind, pl.List):
        return column.str.json_decode(kind)
    return column.cast(pl.Boolean) if kind == pl.Boolean else column


def _series(name: str, values: tuple[object, ...], kind: pl.DataType) -> pl.Series:
    stored = pl.Series(name, values, _stored(kind))
    return stored if stored.dtype == kind else stored.to_frame().select(_decoded(pl.col(name), kind)).to_series()
