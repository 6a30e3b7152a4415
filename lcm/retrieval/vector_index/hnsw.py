"""A graph of near neighbours (hnswlib), for more vectors than one cares to look at.

The graph only proposes candidates; `ExactIndex` gives them their cosines and their order. So every score equals the
exact one bit for bit, and what can differ is only whether a document was found: its recall, set by `ef`.

No graph is built below `exact_below` vectors, and none is asked where few are allowed or many wanted: looking at
every allowed vector is faster then than asking the graph for an eighth of them (`largest_share`; measured from 2,000 to
40,000 vectors). With `exact_below` 0 the graph answers whatever it costs, and all are looked at only where it is torn
apart and cannot reach as many as were wanted.

What is not allowed is passed through on the way and not counted among the candidates, so a filter costs time, not
recall. hnswlib asks it of Python at every step, some hundred bytes looked up a query: as fast as asking for more and
throwing away, and never short.

hnswlib does not protect itself: adding while searching, or deleting twice, ends the process, and two threads
building give another graph each time. Hence the lock, the check of ids, and the building by one thread.

Source: hnswlib 0.8 (Malkov and Yashunin, 2018: m, ef_construction and ef are theirs).
"""

import importlib.metadata
import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from lcm.checks import check_range
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import IndexAnswer
from lcm.retrieval.indexing import Ranked, refuse_negative
from lcm.retrieval.saved_file import Blob, read_index, write_index
from lcm.retrieval.vector_index.exact import ExactIndex, rounding, to_grid
from lcm.retrieval.vector_index.row_graph import Nearest, RowGraph
from lcm.retrieval.vector_index.row_order import RowOrder, Rows, VisibleRows


@dataclass(frozen=True, slots=True)
class Hnsw:
    """Settings.

    Args:
        m: links a vector keeps in each layer (twice as many in the lowest), >= 2.
        ef_construction: candidates looked at to place a vector, >= 1.
        ef: candidates looked at to answer a query, >= 1.
        ef_a_result: so many for each result wanted, if that is more, >= 1. Asking for 100, a search 100 wide finds .81
            of them and one 200 wide .93 (40,000 vectors).
        seed: of the layers drawn for the vectors, in [0, 2**32 - 1].
        exact_below: with fewer vectors to look at than this, all are looked at; 0 means that the graph always answers.
        largest_share: of the vectors to look at, in (0, 1]: where the candidates would be more, all are looked at. Not
            asked with `exact_below` 0.
    """

    m: int = 16
    ef_construction: int = 200
    ef: int = 100
    ef_a_result: int = 2
    seed: int = 0
    exact_below: int = 5000
    largest_share: float = 0.125
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {"largest_share": {"exact_below": 0}}
    """Setting -> the values of others that leave it without effect."""

    def __post_init__(self) -> None:
        check_range(self, "m", ge=2, le=10_000)  # hnswlib caps m here, with a note on stderr
        check_range(self, "ef_construction", "ef", "ef_a_result", ge=1)
        check_range(self, "seed", ge=0, lt=2**32)
        check_range(self, "exact_below", ge=0)
        check_range(self, "largest_share", gt=0, le=1)

    def build(self, dim: int, *, incidents: Counter[str]) -> "HnswIndex":
        return HnswIndex(self, dim)


class HnswIndex:
    """Raw cosines of the documents that the graph finds. Safe to use from several threads.

    Equal calls in equal order give equal answers. Among documents of equal cosine the first added come first, but
    where more of them than `ef` compete for the last places, which ones are found is the graph's affair.
    """

    def __init__(self, settings: Hnsw, dim: int) -> None:
        self._settings = settings
        self._dim = dim
        self._lock = threading.Lock()
        self._exact = ExactIndex(dim)
        self._order = RowOrder()  # of the rows of `_exact`
        self._graph = RowGraph(settings, dim)  # empty until there are `exact_below` vectors

    def __len__(self) -> int:
        return len(self._exact)

    @property
    def exact(self) -> ExactIndex:
        """All vectors, to score other candidates than the graph's; changed through this index alone."""
        return self._exact

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add one vector to each id; an id given again, here or later, has one vector more.

        Raises:
            ValueError: if ids and vectors differ in number, or a vector is neither of unit length nor zero;
                nothing is added.
        """
        rows = to_grid(vectors, self._dim)
        with self._lock:
            self._settle()
            self._exact.add(ids, rows)
            self._order.add(ids)
            if self._graph.size:
                self._graph.add(rows, self._order.count)
            else:
                self._rebuild()

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these ids with all of their vectors.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        with self._lock:
            self._exact.remove(ids)
            self._order.remove(ids)

    def search(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        return [(ids, cosines) for ids, cosines, *_ in self.answers(vectors, k, allowed)]

    def answers(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[IndexAnswer]:
        """As `search`, with how each answer was found."""
        queries = to_grid(vectors, self._dim)
        refuse_negative(k)
        with self._lock:
            self._settle()
            found = self._found_by_graph(queries, k, self._order.visible(allowed))
            waiting = [query for query, answer in enumerate(found) if answer is None]
            scanned = iter(self._exact.search(queries[waiting], k, allowed) if waiting else ())
        return [IndexAnswer(*(answer or next(scanned)), self._dim, answer is not None) for answer in found]

    def _found_by_graph(self, queries: Vectors, k: int, seen: VisibleRows) -> list[Ranked | None]:
        """None for a query that every vector must be looked at for."""
        found: list[Ranked | None] = [None] * len(queries)
        visible, wanted = len(seen.rows), min(k, seen.ids)
        if not (wanted and len(queries)) or visible < self._settings.exact_below:
            return found
        a_result = self._settings.ef_a_result * visible / seen.ids
        width = min(max(self._settings.ef, math.ceil(a_result * wanted)), visible)
        waiting = list(range(len(queries)))
        while waiting and self._may_ask(width, visible):
            asked = zip(waiting, self._graph.nearest(queries[waiting], width, width, seen), strict=True)
            nearest = {query: one for query, one in asked if one is not None}
            if nearest and self._order.has_one_row_an_id:
                places = _contenders(list(nearest.values()), wanted, self._dim)
                answers = self._exact.rank(queries[list(nearest)], places, wanted)
                for query, answer in zip(nearest, answers, strict=True):
                    found[query] = answer
                return found
            crowded = []
            for query, (rows, _) in nearest.items():
                found[query] = answer = self._exact.rank_owners(queries[query], rows, wanted)
                if len(answer[0]) < wanted and width < visible:  # several vectors of one id crowd out others
                    crowded.append(query)
            waiting, width = crowded, min(2 * width, visible)
        return found

    def _may_ask(self, width: int, visible: int) -> bool:
        """A filter lets pass `visible` of all vectors: the graph meets as many more."""
        return self._settings.exact_below == 0 or width * self._order.count <= self._settings.largest_share * visible**2

    def vectors_of(self, ids: Sequence[str]) -> Vectors:
        with self._lock:
            return self._exact.vectors_of(ids)

    def save(self, path: Path) -> None:
        with self._lock:
            self._settle()
            ids, vectors = self._exact.packed()
            blobs: dict[str, Blob | list[Blob]] = {
                "vectors": vectors,
                "graph": self._graph.to_bytes(),
                "graph_rows": self._graph.rows_bytes(),
            }
            write_index(path, self._file_settings(), {"ids": ids}, blobs)

    def load(self, path: Path) -> None:
        content, blobs = read_index(path, self._file_settings())
        exact = ExactIndex(self._dim)
        exact.restore(content["ids"], blobs["vectors"])
        graph = RowGraph.from_bytes(self._settings, self._dim, blobs["graph"], blobs["graph_rows"])
        with self._lock:
            self._exact, self._graph, self._order = exact, graph, RowOrder(content["ids"])
            if not self._graph.size:  # saved where `exact_below` was larger
                self._rebuild()

    def _file_settings(self) -> dict[str, object]:
        """What the graph on disk depends on; how it is searched is free to change."""
        return {
            "kind": "hnsw rows",
            "dim": self._dim,
            "m": self._settings.m,
            "ef_construction": self._settings.ef_construction,
            "seed": self._settings.seed,
            "hnswlib": importlib.metadata.version("hnswlib"),
        }

    def _settle(self) -> None:
        """Have the graph follow rows that were removed or moved: once for many changes."""
        order = self._order.flush()
        if order is None or not self._graph.size:
            return
        self._graph.keep(order)
        # Dead vectors still cost the search steps: rather a new graph than one more than half dead.
        if self._graph.dead > self._order.count:
            self._rebuild()

    def _rebuild(self) -> None:
        self._graph = RowGraph(self._settings, self._dim)
        self._order.flush()
        if self._order.count >= self._settings.exact_below:
            self._graph.add(self._exact.contents()[1], 0)


def _contenders(nearest: Sequence[Nearest], k: int, dim: int) -> Rows:
    """Those of the nearest rows that can be among a query's best k once they are scored exactly.

    Returns:
        shape (queries, as many as the query with most of them has).
    """
    rows, products = (np.stack(part) for part in zip(*nearest, strict=True))
    least = products[:, k - 1 : k].astype(np.float64) - 2 * rounding(dim)  # products descend
    kept: Rows = rows[:, : int((products >= least).sum(axis=1).max())]
    return kept
