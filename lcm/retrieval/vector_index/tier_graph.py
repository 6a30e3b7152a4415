"""A graph of near neighbours (hnswlib) over the rows of one index tier.

hnswlib does not protect itself: the index that owns the graph holds a lock, and one thread builds.
"""

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import hnswlib
import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors
from lcm.retrieval.vector_index.graph_growth import SMALLEST_CAPACITY, GraphBuildSettings, add_rows
from lcm.retrieval.vector_index.saved_file import Blob
from lcm.retrieval.vector_index.tier_order import Rows

_log = logging.getLogger(__name__)
_DEAD = -1


class GraphSettings(GraphBuildSettings, Protocol):
    """How a graph is built, and how widely it is searched."""

    @property
    def ef(self) -> int: ...

    @property
    def flat_below(self) -> int: ...

    @property
    def largest_share(self) -> float: ...


class TierGraph:
    """hnswlib's index whose labels are translated to rows, which may move."""

    def __init__(self, settings: GraphSettings, width: int) -> None:
        self._settings = settings
        self._graph = hnswlib.Index("ip", width)
        self._rows = np.empty(0, np.int64)  # label -> row, or _DEAD

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

    def keep(self, order: Rows, count: int) -> None:
        """Follow rows that moved: row i is now what row order[i] of `count` was; all others are gone."""
        moved = np.full(count, _DEAD, np.int64)
        moved[order] = np.arange(len(order))
        was_alive = self._rows != _DEAD
        self._rows[was_alive] = moved[self._rows[was_alive]]
        for label in np.flatnonzero(was_alive & (self._rows == _DEAD)).tolist():
            self._graph.mark_deleted(label)

    def nearest(
        self, queries: Vectors, count: int, is_visible: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Rows, npt.NDArray[np.float32]] | None:
        """About the `count` nearest rows of each query with their products, nearest first; None where it found fewer.

        The products are exact where those of queries and rows are multiples of 2**-22.

        Args:
            queries: shape (queries, width).
            count: at least 1.
            is_visible: whether each row may be found; None = all.
        """
        self._graph.set_ef(max(self._settings.ef, count))
        passes: Callable[[int], int] | None = None
        if is_visible is not None:
            passes = is_visible[self._rows].tobytes().__getitem__  # dead rows are hidden by themselves
        try:
            # With a filter several threads would wait for Python.
            threads = -1 if passes is None else 1
            labels, distances = self._graph.knn_query(queries, count, num_threads=threads, filter=passes)
        except RuntimeError as err:  # hnswlib's way to say that it reached fewer than `count`
            _log.info("hnswlib found fewer than %d vectors (%s): looking at all", count, err)
            return None
        return self._rows[labels.astype(np.int64)], 1 - distances

    def to_bytes(self) -> bytes:
        if not self.size:
            return b""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            self._graph.save_index(str(path))
            return path.read_bytes()

    def rows_bytes(self) -> bytes:
        return self._rows.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, settings: GraphSettings, width: int, data: Blob, rows: Blob) -> "TierGraph":
        graph = cls(settings, width)
        graph._rows = np.frombuffer(rows, "<i8").astype(np.int64)
        if graph.size:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "graph"
                path.write_bytes(data)
                graph._graph.load_index(str(path), max_elements=max(graph.size, SMALLEST_CAPACITY))
        return graph
