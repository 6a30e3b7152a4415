"""The rows of an index: which document each belongs to, and their vectors.

Ids become numbers once, and searches go on with arrays of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors
from lcm.retrieval.indexing import Blob, refuse_unknown

Rows = npt.NDArray[np.int64]
"""Row numbers, from 0."""

_KEPT = 4
"""Filters whose rows are remembered: live queries come with the same ones again and again."""
_MORE_ROWS = 1 << 16  # that are made room for at most


@dataclass(frozen=True, slots=True, eq=False)
class VisibleRows:
    """The rows that a query may be answered with."""

    rows: Rows
    """Ascending."""
    firsts: Rows
    """The place in `rows` of the first row of each document."""
    is_everything: bool

    @property
    def ids(self) -> int:
        """How many documents they belong to."""
        return len(self.firsts)

    @property
    def has_one_row_an_id(self) -> bool:
        return len(self.rows) == len(self.firsts)

    def of(self, places: Rows) -> "VisibleRows":
        """All rows of some of the documents, named by their places in `firsts`, ascending."""
        if self.has_one_row_an_id:
            return VisibleRows(self.rows[places], np.arange(len(places)), is_everything=False)
        ends = np.append(self.firsts[1:], len(self.rows))
        chosen, firsts = _runs(self.firsts[places], ends[places])
        return VisibleRows(self.rows[chosen], firsts, is_everything=False)


class RowOrder:
    """Rows by the order of adding their ids, then of adding themselves."""

    def __init__(self, ids: Sequence[str] = ()) -> None:
        """Args: ids: the id of every row, in that order."""
        self._serials: dict[str, int] = {}
        self._names: list[str] = []  # by serial
        self._owners = np.empty(0, np.int64)  # row -> serial
        self._new: list[int] = []  # serials of rows not in _owners yet
        self._removed: set[int] = set()
        self._asked: list[tuple[tuple[str, ...] | None, VisibleRows]] = []
        self.add(ids)
        self.flush()

    def __len__(self) -> int:
        """How many ids there are."""
        return len(self._serials)

    @property
    def count(self) -> int:
        """Rows, once settled."""
        return len(self._owners)

    @property
    def has_one_row_an_id(self) -> bool:
        return len(self._owners) == len(self._serials)

    def add(self, ids: Sequence[str]) -> None:
        for document_id in ids:
            serial = self._serials.get(document_id)
            if serial is None:
                serial = self._serials[document_id] = len(self._names)
                self._names.append(document_id)
            self._new.append(serial)

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these ids with all of their rows.

        Raises:
            ValueError: if an id is not there; nothing is removed.
        """
        refuse_unknown(ids, self._serials)
        for document_id in dict.fromkeys(ids):
            self._removed.add(self._serials.pop(document_id))

    def flush(self) -> Rows | None:
        """Take in what changed, once for many changes.

        Returns:
            The rows that stay, new ones counted on from the last, in their new order; None if all stay where they are.
        """
        if not self._new and not self._removed:
            return None
        last = max(len(self._owners) - 1, 0)
        self._owners = np.concatenate([self._owners, np.array(self._new, np.int64)])
        is_sorted = bool(np.all(np.diff(self._owners[last:]) >= 0))
        self._new, self._asked = [], []
        order = None
        if self._removed or not is_sorted:
            is_kept = np.ones(len(self._names), bool)
            is_kept[list(self._removed)] = False
            order = np.flatnonzero(is_kept[self._owners])
            order = order[np.argsort(self._owners[order], kind="stable")]
            self._owners = (np.cumsum(is_kept) - 1)[self._owners[order]]
            self._names = [name for name, keep in zip(self._names, is_kept, strict=True) if keep]
            self._serials = {name: serial for serial, name in enumerate(self._names)}
            self._removed = set()
        return order

    def visible(self, allowed: Sequence[str] | None) -> VisibleRows:
        """The rows of those of these ids that are known, None = all; settled.

        A tuple, which nobody can change, is looked up once as long as no row changes.
        """
        for known, found in self._asked:
            if known is allowed:
                return found
        found = self._looked_up(allowed)
        if allowed is None or isinstance(allowed, tuple):
            self._asked = [(allowed, found), *self._asked[: _KEPT - 1]]
        return found

    def _looked_up(self, allowed: Sequence[str] | None) -> VisibleRows:
        if allowed is None:
            rows = np.arange(self.count)
        else:
            is_asked = np.zeros(len(self._names), bool)
            serials = np.fromiter(map(self._serials.get, allowed, repeat(-1)), np.int64, len(allowed))
            is_asked[serials[serials >= 0]] = True
            rows = np.flatnonzero(is_asked[self._owners])
        firsts = np.arange(len(rows))
        if not self.has_one_row_an_id:
            owners = self._owners[rows]
            firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        return VisibleRows(rows, firsts, is_everything=len(rows) == self.count)

    def spans_of(self, ids: Sequence[str]) -> tuple[Rows, Rows]:
        """The first row of each of these ids, and the row behind its last; settled.

        Raises:
            ValueError: if an id is not there.
        """
        try:
            serials = np.fromiter(map(self._serials.__getitem__, ids), np.int64, len(ids))
        except KeyError:
            refuse_unknown(ids, self._serials)
            raise
        if self.has_one_row_an_id:
            return serials, serials + 1
        return np.searchsorted(self._owners, serials), np.searchsorted(self._owners, serials, side="right")

    def whole(self, rows: Rows) -> VisibleRows:
        """All rows of the documents that these rows belong to; settled."""
        owners = np.unique(self._owners[rows])
        if self.has_one_row_an_id:
            return VisibleRows(owners, np.arange(len(owners)), is_everything=False)
        ends = np.searchsorted(self._owners, owners, side="right")
        chosen, firsts = _runs(np.searchsorted(self._owners, owners), ends)
        return VisibleRows(chosen, firsts, is_everything=False)

    def names_of(self, rows: Rows) -> list[str]:
        """The id of each of these rows; settled."""
        return [self._names[owner] for owner in self._owners[rows].tolist()]

    def owners_of(self, rows: Rows) -> tuple[list[str], Rows]:
        """The ids of these rows, each once, and the place in `rows` of the first row of each; settled."""
        firsts = np.sort(np.unique(self._owners[rows], return_index=True)[1])
        return self.names_of(rows[firsts]), firsts


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


def _runs(starts: Rows, ends: Rows) -> tuple[Rows, Rows]:
    """Runs of numbers one after another, and the place at which each begins."""
    counts = ends - starts
    firsts = np.cumsum(counts) - counts
    return np.repeat(starts - firsts, counts) + np.arange(counts.sum()), firsts
