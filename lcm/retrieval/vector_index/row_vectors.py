"""The vectors of an index by row: what was read from a file stays there, and what comes stands behind it."""

import numpy as np

from lcm.protocols.models import Vectors
from lcm.retrieval.saved_file import Blob
from lcm.retrieval.vector_index.row_order import Rows

_MORE_ROWS = 1 << 16  # that are made room for at most


class RowVectors:
    """Rows that are never written to, and behind them rows that were added."""

    def __init__(self, first: Vectors) -> None:
        self._first = first
        self._added = np.empty((0, first.shape[1]), np.float32)  # grown ahead
        self._count = len(first)

    def __len__(self) -> int:
        return self._count

    @property
    def blocks(self) -> list[Vectors]:
        """All rows, as one or two arrays: views, to be let go of before a row is added."""
        added = self._added[: self._count - len(self._first)]
        return [block for block in (self._first, added) if len(block)] or [added]

    def __getitem__(self, rows: Rows) -> Vectors:
        """A copy of some rows: one for each number, in the shape of the numbers."""
        if not len(self._added):
            return self._first[rows]
        first = len(self._first)
        if not first:
            return self._added[rows]
        found = np.empty((*rows.shape, self._first.shape[1]), np.float32)
        is_added = rows >= first
        found[~is_added], found[is_added] = self._first[rows[~is_added]], self._added[rows[is_added] - first]
        return found

    def add(self, rows: Vectors) -> None:
        start = self._count - len(self._first)
        end, capacity = start + len(rows), len(self._added)
        if end > capacity:
            capacity = max(end, min(2 * capacity, capacity + _MORE_ROWS))
            # In place: a large block is moved by its addresses, where a new one beside it would double what is held.
            self._added.resize((capacity, rows.shape[1]), refcheck=False)
        self._added[start:end] = rows
        self._count += len(rows)


def pack(vectors: Vectors) -> Blob:
    """The bytes of vectors; those of a contiguous array are not copied."""
    return np.ascontiguousarray(vectors, "<f4").reshape(-1).view(np.uint8).data


def unpack(packed: Blob, dim: int) -> Vectors:
    """The vectors of these bytes, where they are; they cannot be written to."""
    vectors: Vectors = np.require(np.frombuffer(packed, "<f4").reshape(-1, dim), np.float32, "A")
    return vectors
