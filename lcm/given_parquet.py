"""Parquet that others give: row after row, and none before it is known what it becomes.

A value that a file holds once and names a billion times is small there. Texts are therefore read as numbers of a
dictionary, and counted before any is written out.
"""

import math
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from lcm.errors import LcmError, LimitError
from lcm.given import Bound, opened_as_is

UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError)
"""What Arrow raises where a file is damaged; Polars may end the process."""
_MOST_ROWS, _MOST_BYTES = 500, 4 * 2**20
_READ: dict[str, Any] = {"buffer_size": 2**20, "pre_buffer": False, "page_checksum_verification": True}
"""How a file is read: in pieces, each page as it was written where the file has checksums."""
_NUMBER_BYTES = 8
_ROW_BYTES = 64
"""What a row takes at least, by whoever reads it."""


class Rows(NamedTuple):
    """Some rows that follow each other."""

    columns: pa.RecordBatch
    n_bytes: int
    """When they are written out."""


def column_names(path: Path) -> list[str]:
    """The columns of a file.

    Raises:
        ArrowException: or another of `UNREADABLE`, if it is no Parquet.
    """
    with opened_as_is(path) as stream:
        names: list[str] = pq.read_schema(stream).names
    return names


def json_value(value: Any) -> Any:
    """A cell as JSON; what JSON lacks as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(key): json_value(held) for key, held in value.items()}
        case list() | tuple():
            return [json_value(held) for held in value]
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode()
    return str(value)


def rows(path: Path, refusal: type[LcmError] = LimitError, columns: Sequence[str] | None = None) -> Iterator[Rows]:
    """The rows of a file, so many at a time as take a few MiB.

    Args:
        refusal: what is raised where the file becomes more than `UNPACKED_RATIO` allows.
        columns: those that are read; None = all.

    Raises:
        ArrowException: or another of `UNREADABLE`, from where the file is damaged.
    """
    opened_as_is(path).close()
    bound = Bound(path, refusal)
    for group in _groups(path):
        Bound(path, refusal).take(_packed_bytes(group))
    with pq.ParquetFile(path, **_READ, read_dictionary=_texts(path)) as table:
        for batch in table.iter_batches(_rows_at_once(table.metadata), columns=columns, use_threads=False):
            ends = np.cumsum(sum((_cell_bytes(column) for column in batch.columns), np.zeros(batch.num_rows, np.int64)))
            first = taken = 0
            while first < batch.num_rows:
                end = max(first + 1, int(np.searchsorted(ends, taken + _MOST_BYTES, "right")))
                n_bytes = int(ends[end - 1]) - taken
                bound.take(n_bytes + (end - first) * _ROW_BYTES)
                yield Rows(batch.slice(first, end - first), n_bytes)
                first, taken = end, taken + n_bytes


def _groups(path: Path) -> Iterator[Any]:
    metadata = pq.read_metadata(path)
    yield from (metadata.row_group(number) for number in range(metadata.num_row_groups))


def _packed_bytes(group: Any) -> int:
    """Of a group of rows as it is encoded, with the elements of lists, any number of which one row may have."""
    values = (int(group.column(number).num_values) for number in range(group.num_columns))
    return int(group.total_byte_size) + _NUMBER_BYTES * sum(max(0, number - int(group.num_rows)) for number in values)


def _texts(path: Path) -> list[str]:
    schema = pq.read_metadata(path).schema
    found = (schema.column(number) for number in range(len(schema)))
    return [one.path for one in found if one.physical_type == "BYTE_ARRAY" and one.logical_type.type != "DECIMAL"]


def _rows_at_once(metadata: Any) -> int:
    """So many rows that long ones do not add up."""
    total: int = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return max(1, min(_MOST_ROWS, _MOST_BYTES * int(metadata.num_rows) // max(1, total)))


def _cell_bytes(column: pa.Array) -> Any:
    """What each cell takes when it is written out, int64."""
    if pa.types.is_dictionary(column.type):
        lengths = pc.take(_lengths(column.dictionary), column.indices)
    elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_map(column.type):
        within = column.values
        ends = np.concatenate([[0], np.cumsum(_cell_bytes(within))])
        return np.diff(ends[np.asarray(column.offsets)])
    elif pa.types.is_struct(column.type):
        return sum(map(_cell_bytes, column.flatten()), np.zeros(len(column), np.int64))
    else:
        lengths = _lengths(column)
    return np.asarray(pc.fill_null(lengths, 0), np.int64)


def _lengths(values: pa.Array) -> pa.Array:
    kind = values.type
    has_length = pa.types.is_binary(kind) or pa.types.is_string(kind)
    if has_length or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return pc.cast(pc.binary_length(values), pa.int64())
    return pc.if_else(pc.is_valid(values), _NUMBER_BYTES, 0)
