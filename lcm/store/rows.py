"""Rows to frames: a hundred thousand rows in well under a second, a single row in half a millisecond; and the SQL that
all tables share."""

import functools
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from lcm.encoding import INSTANT_FORMAT
from lcm.errors import StoreError

INSTANT = pl.Datetime("ms", "UTC")
LISTED = "IN (SELECT value FROM json_each(?))"
"""What follows a column that is one of the values of a list, which is given as JSON text: numbers, or ids of ours."""
_AT_ONCE = 1 << 12
"""Rows that are held as rows at a time: they take ten times as much memory as in a frame."""
_IDS_AT_ONCE = 500


def listed(ids: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Ids of others, some at a time, each time behind what follows a column that is one of them.

    Not as JSON text: an id may hold a NUL, where SQLite takes a text out of JSON to end.
    """
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = ids[start : start + _IDS_AT_ONCE]
        yield f"IN ({', '.join('?' * len(some))})", some


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
    columns = list(zip(*cursor.fetchmany(_AT_ONCE), strict=True)) or [()] * len(schema)
    try:
        return _decoded(dict(zip(schema, columns, strict=True)), schema)
    except (TypeError, pl.exceptions.PolarsError):
        for (name, kind), values in zip(schema.items(), columns, strict=True):
            try:
                _decoded({name: values}, {name: kind})
            except (TypeError, pl.exceptions.PolarsError) as error:
                store = getattr(cursor.connection, "path", None) or "the store"
                raise StoreError(
                    f"{store} holds a {name} that is no {kind}, damaged or written by another program: mend or delete "
                    "that row"
                ) from error
        raise


def _decoded(columns: Mapping[str, Sequence[object]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    stored = [pl.Series(name, values, _stored(schema[name])) for name, values in columns.items()]
    return pl.DataFrame(stored).with_columns(_decodings(tuple(schema.items())))


def _stored(kind: pl.DataType) -> pl.DataType:
    if kind == INSTANT or isinstance(kind, pl.List):
        return pl.String()
    return pl.Int64() if kind == pl.Boolean else kind


@functools.lru_cache(maxsize=64)
def _decodings(schema: tuple[tuple[str, pl.DataType], ...]) -> list[pl.Expr]:
    """What becomes of the columns that are stored as something else."""
    return [_decoding(pl.col(name), kind) for name, kind in schema if kind != _stored(kind)]


def _decoding(stored: pl.Expr, kind: pl.DataType) -> pl.Expr:
    if kind == INSTANT:
        return stored.str.to_datetime(INSTANT_FORMAT, time_unit="ms", time_zone="UTC")
    return stored.cast(pl.Boolean) if kind == pl.Boolean else stored.str.json_decode(kind)
