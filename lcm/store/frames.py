"""Rows to frames, a column at a time: a hundred thousand rows in well under a second."""

import sqlite3
from collections.abc import Mapping

import polars as pl

from lcm.encoding import INSTANT_FORMAT
from lcm.errors import StoreError

INSTANT = pl.Datetime("ms", "UTC")


def frame(cursor: sqlite3.Cursor, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Read every row; the query's columns are the schema's, in order.

    Instants arrive as their text form and lists as JSON text.

    Raises:
        StoreError: naming a column with a value that it does not take.
    """
    columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(schema)
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


def _series(name: str, values: tuple[object, ...], kind: pl.DataType) -> pl.Series:
    if kind == INSTANT:
        return pl.Series(name, values, pl.String).str.to_datetime(INSTANT_FORMAT, time_unit="ms", time_zone="UTC")
    if isinstance(kind, pl.List):
        return pl.Series(name, values, pl.String).str.json_decode(kind)
    if kind == pl.Boolean:
        return pl.Series(name, values, pl.Int64).cast(pl.Boolean)
    return pl.Series(name, values, kind)
