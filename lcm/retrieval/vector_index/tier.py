"""One lower width of an index: rows that are derived from the full width, which is the truth, and may be lost.

Rows are rounded to a grid, so that sums of products have no rounding and depend on nothing that stands beside them
(see `lcm.retrieval.vector_index.exact`). Where candidates are scored again at full width, the grid is 2**-11 and the
products are float32: half the memory traffic, cosines off by .001 at most. Where the width's own cosines are the
scores, the grid is that of `exact`, 2**-26, and the products are float64.

Its file lies beside the full width's and is bound to its content. One that is missing, damaged, of other settings or of
another content is no loss: the tier is derived again. A tier that is dirty when it is saved leaves a file that says so.

A rotation turns vectors so that their first numbers tell the most, for embedders whose own first numbers do not. The
axes are the eigenvectors of the documents' second moments, largest first (a principal component analysis about the
origin, so that cosines stay: a rotation is orthogonal). Ours. Equal vectors give equal axes and a query the same turned
row whatever stands beside it: what is summed is rounded to a grid on which float64 sums are exact.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.errors import StoreError
from lcm.protocols.models import Vectors
from lcm.retrieval.indexing import Blob, best_places, read_index, write_index
from lcm.retrieval.vector_index.exact import cosines
from lcm.retrieval.vector_index.hnsw import Hnsw, RowGraph
from lcm.retrieval.vector_index.rows import Rows, VisibleRows, pack, unpack

_FINE, _COARSE = np.float32(2**26), np.float32(2**11)
_BLOCK_NUMBERS = 1 << 22
_MOMENT_GRID = 2.0**11  # products are multiples of 2**-22: sums of up to 2**30 of them are exact
_AXIS_GRID = 2.0**26
_SHORTEST = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """The first axes of a rotation."""

    axes: npt.NDArray[np.float64]
    """Shape (width, dim): orthonormal rows, multiples of 2**-26."""
    learnt_from: int
    """Vectors."""

    def rotated(self, vectors: Vectors) -> npt.NDArray[np.float64]:
        """Shape (n, width): the coordinates of gridded rows along the axes."""
        products: npt.NDArray[np.float64] = vectors.astype(np.float64) @ self.axes.T
        return products

    def first(self, width: int) -> "Rotation":
        return Rotation(np.ascontiguousarray(self.axes[:width]), self.learnt_from)


@dataclass(frozen=True, slots=True)
class NearestRows:
    """Rows of one query, nearest first, ties in the order of rows."""

    rows: Rows
    scores: npt.NDArray[np.floating]
    """Cosines at this width."""
    is_by_graph: bool
    """Not every row was looked at."""


class Tier:
    """The rows of one width, in the order of the full width's."""

    def __init__(self, settings: Hnsw, width: int, *, is_rescored: bool) -> None:
        """
        Args:
            settings: of the graph, which is empty until there are `exact_below` rows.
            width: numbers a row.
            is_rescored: rows only propose candidates.
        """
        self.width = width
        self.dirt: str | None = None
        """Why the rows are not those of the full width, until they are derived again; None: they are."""
        self.rotation: Rotation | None = None
        self._ef = settings.ef
        self._is_rescored = is_rescored
        self._rows = np.empty((0, width), np.float32)  # only the first _count are in use
        self._count = 0
        self.graph = RowGraph(settings, width, lambda: self.rows)

    @property
    def count(self) -> int:
        return self._count

    @property
    def rows(self) -> Vectors:
        return self._rows[: self._count]

    def derive(self, vectors: Vectors) -> Vectors:
        """Gridded full-width rows to rows of this width."""
        turned = vectors if self.rotation is None else self.rotation.rotated(vectors).astype(np.float32)
        grid = _COARSE if self._is_rescored else _FINE
        rows: Vectors = np.rint(truncate(turned, self.width) * grid) / grid
        return rows

    def add(self, vectors: Vectors) -> None:
        rows = self.derive(vectors)
        start, end = self._count, self._count + len(rows)
        if end > len(self._rows):
            grown = np.empty((max(end, 2 * len(self._rows)), self.width), np.float32)
            grown[:start] = self.rows
            self._rows = grown
        self._rows[start:end] = rows
        self._count = end
        self.graph.add(rows, start)

    def follow(self, order: Rows) -> None:
        """Follow rows that moved: row i is now what row order[i] was; all others are gone."""
        self._rows = self.rows[order]
        self._count = len(order)
        self.graph.follow(order)

    def rebuild(self, vectors: Vectors) -> None:
        """Derive all rows from those of the full width."""
        self._count = 0
        self.graph.clear()
        self.add(vectors)
        self.dirt = None

    def write(self, path: Path, settings: Mapping[str, Any], source: str) -> None:
        """Write the file beside an index that is kept at `path`; a dirty tier as nothing but the mark that it is.

        Args:
            path: of the full width.
            settings: what the rows and the graph depend on.
            source: the `source_digest` of the full width.
        """
        content: dict[str, Any] = {"source": source, "dirt": self.dirt, "learnt_from": 0}
        blobs: dict[str, Blob] = {}
        if self.dirt is None:
            blobs = {"rows": pack(self.rows), **self.graph.blobs()}
            if self.rotation is not None:
                content["learnt_from"] = self.rotation.learnt_from
                blobs["axes"] = self.rotation.axes.astype("<f8").tobytes()
        write_index(self.path(path), settings, content, blobs)

    def read(self, path: Path, settings: Mapping[str, Any], source: str) -> None:
        """Take what `write` left.

        Raises:
            StoreError: if the tier must be derived again, with the reason.
        """
        file = self.path(path)
        content, blobs = read_index(file, settings)
        if content["dirt"] is not None:
            raise StoreError(f"the index tier {str(file)!r} was left dirty ({content['dirt']})")
        if content["source"] != source:
            raise StoreError(f"the index tier {str(file)!r} was derived from other vectors")
        self.rotation = self.dirt = None
        if "axes" in blobs:
            axes = np.frombuffer(blobs["axes"], "<f8").astype(np.float64).reshape(self.width, -1)
            self.rotation = Rotation(axes, content["learnt_from"])
        self._rows = unpack(blobs["rows"], self.width).copy()
        self._count = len(self._rows)
        self.graph.read(blobs, self._count)

    def path(self, path: Path) -> Path:
        """Where it is kept, for an index that is kept at `path`."""
        return path.with_name(f"{path.name}.{self.width}")

    def nearest(self, vectors: Vectors, count: int, seen: VisibleRows) -> list[NearestRows]:
        """The `count` nearest rows of each gridded full-width query; all of them if there are fewer.

        Args:
            vectors: shape (queries, dim).
            count: at least 1.
            seen: which rows may be found.
        """
        queries = self.derive(vectors)
        found = self._ask_graph(queries, count, seen)
        waiting = [query for query, one in enumerate(found) if one is None]
        if waiting:
            rows = self.rows if seen.is_everything else self._rows[seen.rows]
            queries_a_block = max(1, _BLOCK_NUMBERS // max(len(rows), 1))
            for start in range(0, len(waiting), queries_a_block):
                block = waiting[start : start + queries_a_block]
                products = queries[block] @ rows.T if self._is_rescored else cosines(queries[block], rows)
                for query, scores in zip(block, products, strict=True):
                    places = best_places(scores, count)
                    found[query] = NearestRows(seen.rows[places], scores[places], False)
        return [one for one in found if one is not None]

    def _ask_graph(self, queries: Vectors, count: int, seen: VisibleRows) -> list[NearestRows | None]:
        """None for a query that the graph could not answer."""
        nothing: list[NearestRows | None] = [None] * len(queries)
        if not self.graph.size or not len(queries):
            return nothing
        if count > len(seen.rows) or not self.graph.is_worth(count, len(seen.rows)):
            return nothing
        nearest = self.graph.nearest(queries, count, self._ef, seen)
        return [one and self._ordered(query, *one) for query, one in zip(queries, nearest, strict=True)]

    def _ordered(self, query: Vectors, rows: Rows, products: npt.NDArray[np.floating]) -> NearestRows:
        if not self._is_rescored:
            products = cosines(query[np.newaxis], self._rows[rows])[0]
        order = np.lexsort((rows, -products))
        return NearestRows(rows[order], products[order], True)


def source_digest(ids: Sequence[str], vectors: Vectors) -> str:
    """What the full width holds."""
    digest = hashlib.sha256(json.dumps(list(ids)).encode())
    digest.update(pack(vectors))
    return digest.hexdigest()


def learn(vectors: Vectors) -> Rotation:
    """Learn all axes from unit vectors.

    Raises:
        numpy.linalg.LinAlgError: if the eigenvectors were not found.
    """
    rows = np.rint(vectors.astype(np.float64) * _MOMENT_GRID) / _MOMENT_GRID
    _, columns = np.linalg.eigh(rows.T @ rows)
    axes = np.ascontiguousarray(columns[:, ::-1].T)
    # An eigenvector is known up to its sign.
    largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=1)[:, np.newaxis], axis=1)
    return Rotation(np.rint(axes * np.where(largest < 0, -1.0, 1.0) * _AXIS_GRID) / _AXIS_GRID, len(vectors))


def truncate(vectors: Vectors, width: int) -> Vectors:
    """Cut vectors to their first `width` numbers and scale each to unit length.

    u = v[:width] / |v[:width]|, the length summed in float64, the division in float32. Where the length is below 1e-9
    nothing tells a direction, and the row stays as it was cut.

    Args:
        vectors: shape (n, dim), float32; rows need not have unit length.
        width: more than `dim` keeps all of a row, 0 or less nothing.
    Returns:
        shape (n, min(width, dim)), float32.
    Source: libravdb memory 1.3.5 and 1.4.4 (widths 64, 256 and 768 of one nomic vector).
    """
    cut = np.array(vectors[:, : max(width, 0)], np.float32, order="C")
    lengths = np.sqrt(np.sum(cut.astype(np.float64) ** 2, axis=1))
    told = lengths >= _SHORTEST
    cut[told] /= lengths[told, np.newaxis].astype(np.float32)
    return cut
