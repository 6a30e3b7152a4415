"""A graph of near neighbours (hnswlib) over the rows of an index, of all their numbers or the first of them.

hnswlib does not protect itself: the index that owns the graph holds a lock, and one thread builds.
"""

import logging
import tempfile
from pathlib import Path

import hnswlib
import numpy as np
import numpy.typing as npt

from lcm.given import plain_bytes
from lcm.protocols.models import Vectors
from lcm.retrieval.saved_file import Blob, let_go
from lcm.retrieval.vector_index.graph_growth import SMALLEST_CAPACITY, GraphBuildSettings, add_rows
from lcm.retrieval.vector_index.row_order import Rows, VisibleRows

_log = logging.getLogger(__name__)
_DEAD = -1

Nearest = tuple[Rows, npt.NDArray[np.float32]]
"""Rows of one query and their products with it, nearest first."""


class RowGraph:
    """hnswlib's index whose labels are translated to rows, which may move."""

    def __init__(self, settings: GraphBuildSettings, width: int) -> None:
        self._settings = settings
        self._graph = hnswlib.Index("ip", width)
        self._rows = np.empty(0, np.int64)  # label -> row, or _DEAD
        self._filter: tuple[VisibleRows, bytes] | None = None  # the last one, and whether each label passes it

    @property
    def size(self) -> int:
        """How many vectors are in it, dead ones included."""
        return len(self._rows)

    @property
    def dead(self) -> int:
        return int(np.count_nonzero(self._rows == _DEAD))

    def add(self, vectors: Vectors, first_row: int) -> None:
        """Add rows, counted on from `first_row`."""
        if not len(vectors):
            return
        add_rows(self._graph, self._settings, vectors, self.size)
        self._rows = np.concatenate([self._rows, np.arange(first_row, first_row + len(vectors))])
        self._filter = None

    def keep(self, order: Rows) -> None:
        """Follow rows that moved: row i is now what row order[i] was; all others are gone."""
        moved = np.full(self.size, _DEAD, np.int64)  # no row has a higher number than there are labels
        moved[order] = np.arange(len(order))
        self._filter = None
        was_alive = self._rows != _DEAD
        self._rows[was_alive] = moved[self._rows[was_alive]]
        for label in np.flatnonzero(was_alive & (self._rows == _DEAD)).tolist():
            self._graph.mark_deleted(label)

    def nearest(self, queries: Vectors, count: int, ef: int, seen: VisibleRows) -> list[Nearest | None]:
        """About the `count` nearest rows of each query; None for one that is not led to as many.

        The products are exact where those of queries and rows are multiples of 2**-22.

        Args:
            queries: shape (queries, width).
            count: at least 1.
            ef: how many are looked at on the way, if that is more than `count`.
            seen: which rows may be found.
        """
        self._graph.set_ef(max(ef, count))
        try:
            if seen.is_everything:
                labels, distances = self._graph.knn_query(queries, count)
            else:  # it would wait for Python from several threads
                passes = self._passing(seen).__getitem__
                labels, distances = self._graph.knn_query(queries, count, num_threads=1, filter=passes)
        except RuntimeError as err:  # hnswlib's way to say that it reached fewer than `count`
            if len(queries) > 1:  # one that it cannot answer must not decide for the others
                return [self.nearest(queries[i : i + 1], count, ef, seen)[0] for i in range(len(queries))]
            _log.info("hnswlib found fewer than %d vectors (%s): looking at all", count, err)
            return [None]
        return list(zip(self._rows[labels.astype(np.int64)], 1 - distances, strict=True))

    def _passing(self, seen: VisibleRows) -> bytes:
        if self._filter is None or self._filter[0] is not seen:
            is_visible = np.zeros(self.size, bool)
            is_visible[seen.rows] = True
            is_visible = is_visible[self._rows] & (self._rows != _DEAD)
            self._filter = seen, is_visible.tobytes()
        return self._filter[1]

    def to_bytes(self) -> bytes:
        if not self.size:
            return b""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            self._graph.save_index(str(path))
            return plain_bytes(path)

    def rows_bytes(self) -> bytes:
        return self._rows.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, settings: GraphBuildSettings, width: int, data: Blob, rows: Blob) -> "RowGraph":
        graph = cls(settings, width)
        graph._rows = np.frombuffer(rows, "<i8").astype(np.int64)
        if graph.size:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "graph"
                path.write_bytes(data)
                let_go(data)  # hnswlib has a copy of its own, and the vectors keep the file mapped
                graph._graph.load_index(str(path), max_elements=max(graph.size, SMALLEST_CAPACITY))
        return graph
