"""One lower width of an index: rows that are derived from the full width, which is the truth, and may be lost.

Rows are rounded to a grid, so that sums of products have no rounding and depend on nothing that stands beside them
(see `lcm.retrieval.vector_index.exact`). Where candidates are scored again at full width, the grid is 2**-11 and the
products are float32: half the memory traffic, cosines off by .001 at most. Where the width's own cosines are the
scores, the grid is that of `exact`, 2**-26, and the products are float64.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors
from lcm.retrieval.embedder.matryoshka import truncate
from lcm.retrieval.indexing import best_places
from lcm.retrieval.vector_index.exact import cosines
from lcm.retrieval.vector_index.graph_growth import GraphBuildSettings
from lcm.retrieval.vector_index.row_graph import RowGraph
from lcm.retrieval.vector_index.row_order import Rows, VisibleRows
from lcm.retrieval.vector_index.tier_rotation import Rotation

_FINE, _COARSE = np.float32(2**26), np.float32(2**11)
_BLOCK_NUMBERS = 1 << 22


class GraphSettings(GraphBuildSettings, Protocol):
    """How the graph of a tier is built, when it is asked, and how widely it is searched."""

    @property
    def ef(self) -> int: ...

    @property
    def flat_below(self) -> int: ...

    @property
    def largest_share(self) -> float: ...


@dataclass(frozen=True, slots=True)
class NearestRows:
    """Rows of one query, nearest first, ties in the order of rows."""

    rows: Rows
    scores: npt.NDArray[np.floating]
    """Cosines at this width."""
    is_by_graph: bool
    """Not every row was looked at."""


class TierCache:
    """The rows of one width, in the order of the full width's."""

    def __init__(self, settings: GraphSettings, width: int, *, is_rescored: bool) -> None:
        """
        Args:
            settings: of the graph.
            width: numbers a row.
            is_rescored: rows only propose candidates.
        """
        self.width = width
        self.dirt: str | None = None
        """Why the rows are not those of the full width, until they are derived again; None: they are."""
        self.rotation: Rotation | None = None
        self._settings = settings
        self._is_rescored = is_rescored
        self._clear()

    def _clear(self) -> None:
        self._rows = np.empty((0, self.width), np.float32)  # only the first _count are in use
        self._count = 0
        self.graph = RowGraph(self._settings, self.width)

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
        if self.graph.size:
            self.graph.add(rows, start)
        else:
            self.grow_graph()

    def grow_graph(self) -> None:
        """Begin the graph anew, if there are rows enough for one."""
        self.graph = RowGraph(self._settings, self.width)
        if self._count >= self._settings.flat_below:
            self.graph.add(self.rows, 0)

    def keep(self, order: Rows) -> None:
        """Follow rows that moved: row i becomes what row order[i] was; all others are gone."""
        if self.graph.size:
            self.graph.keep(order)
        self._rows = self.rows[order]
        self._count = len(order)
        if self.graph.size and self.graph.dead > self._count:
            self.grow_graph()

    def rebuild(self, vectors: Vectors) -> None:
        """Derive all rows from those of the full width."""
        self._clear()
        self.add(vectors)
        self.dirt = None

    def restore(self, rows: Vectors, graph: RowGraph, rotation: Rotation | None) -> None:
        """Take what a file held."""
        self._rows, self._count = rows, len(rows)
        self.graph, self.rotation, self.dirt = graph, rotation, None
        if not self.graph.size:  # saved where the graph began later
            self.grow_graph()

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
        visible = len(seen.rows)
        # What is hidden is passed through: the graph meets as many more rows.
        is_worth_it = self._settings.flat_below == 0 or (
            count * self._count <= self._settings.largest_share * visible**2
        )
        if not is_worth_it or count > visible:
            return nothing
        nearest = self.graph.nearest(queries, count, self._settings.ef, seen)
        return [one and self._ordered(query, *one) for query, one in zip(queries, nearest, strict=True)]

    def _ordered(self, query: Vectors, rows: Rows, products: npt.NDArray[np.floating]) -> NearestRows:
        if not self._is_rescored:
            products = cosines(query[np.newaxis], self._rows[rows])[0]
        order = np.lexsort((rows, -products))
        return NearestRows(rows[order], products[order], True)
