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
import logging
import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import hnswlib
import numpy as np
import numpy.typing as npt

from lcm.checks import check_range
from lcm.given import plain_bytes
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import IndexAnswer
from lcm.retrieval.indexing import Blob, Ranked, let_go, read_index, refuse_negative, write_index
from lcm.retrieval.vector_index.exact import ExactIndex, Rows, VisibleRows, pack, rounding, to_grid

_log = logging.getLogger(__name__)
_SMALLEST_CAPACITY = 1024

Nearest = tuple[Rows, npt.NDArray[np.float32]]
"""Rows of one query and their products with it, nearest first."""


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
        self.exact = ExactIndex(dim)
        """All vectors, to score other candidates than the graph's; changed through this index alone."""
        self._graph = RowGraph(settings, dim)
        self.exact.followers.append(lambda gone: self._graph.follow(gone, self.exact.vectors, self.exact.alive))

    def __len__(self) -> int:
        return len(self.exact)

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add one vector to each id; an id given again, here or later, has one vector more.

        Raises:
            ValueError: if ids and vectors differ in number, or a vector is neither of unit length nor zero;
                nothing is added.
        """
        with self.exact.lock:
            start = len(self.exact.vectors)
            self.exact.add(ids, vectors)
            self._graph.add(self.exact.vectors, self.exact.alive, start)

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these ids with all of their vectors.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        self.exact.remove(ids)

    def search(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        return [(ids, cosines) for ids, cosines, *_ in self.answers(vectors, k, allowed)]

    def answers(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[IndexAnswer]:
        """As `search`, with how each answer was found."""
        queries = to_grid(vectors, self._dim)
        refuse_negative(k)
        with self.exact.lock:
            found = self._found_by_graph(queries, k, self.exact.visible(allowed))
            waiting = [query for query, answer in enumerate(found) if answer is None]
            scanned = iter(self.exact.search(queries[waiting], k, allowed) if waiting else ())
        return [IndexAnswer(*(answer or next(scanned)), self._dim, answer is not None) for answer in found]

    def _found_by_graph(self, queries: Vectors, k: int, seen: VisibleRows) -> list[Ranked | None]:
        """None for a query that every vector must be looked at for."""
        found: list[Ranked | None] = [None] * len(queries)
        visible, wanted = len(seen.rows), min(k, len(seen.firsts))
        if not (wanted and len(queries)) or visible < self._settings.exact_below:
            return found
        a_result = self._settings.ef_a_result * visible / len(seen.firsts)
        width = min(max(self._settings.ef, math.ceil(a_result * wanted)), visible)
        waiting = list(range(len(queries)))
        while waiting and self._graph.is_worth(width, visible):
            nearest = self._graph.nearest(queries[waiting], width, width, seen)
            asked, waiting = zip(waiting, nearest, strict=True), []
            for query, one in asked:
                if one is not None:
                    rows, products = one
                    if len(seen.rows) == len(seen.firsts):  # those that cannot be among the best need no exact product
                        rows = rows[products >= products[wanted - 1] - 2 * rounding(self._dim)]
                    found[query] = answer = self.exact.rank(queries[query], rows, wanted)
                    if len(answer[0]) < wanted and width < visible:  # several vectors of one id crowd out others
                        waiting.append(query)
            width = min(2 * width, visible)
        return found

    def vectors_of(self, ids: Sequence[str]) -> Vectors:
        return self.exact.vectors_of(ids)

    def save(self, path: Path) -> None:
        with self.exact.lock:
            ids, vectors = self.exact.contents()
            write_index(path, self._file_settings(), {"ids": ids}, {"vectors": pack(vectors), **self._graph.blobs()})

    def load(self, path: Path) -> None:
        content, blobs = read_index(path, self._file_settings())
        with self.exact.lock:
            self.exact.restore(content["ids"], blobs["vectors"])
            self._graph.read(blobs, self.exact.vectors, self.exact.alive)

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


class RowGraph:
    """hnswlib's index, whose labels are the numbers of rows."""

    def __init__(self, settings: Hnsw, width: int) -> None:
        """
        Args:
            settings: `exact_below` = the graph is empty until there are so many rows.
            width: numbers a row.
        """
        self._settings = settings
        self._width = width
        self._clear()

    def _clear(self) -> None:
        self._graph = hnswlib.Index("ip", self._width)
        self._labels = np.empty(0, np.int64)
        self.alive = 0
        """Rows that are in it and not dead."""
        self._filter: tuple[VisibleRows, bytes] | None = None  # the last one, and whether each row passes it

    @property
    def size(self) -> int:
        """How many rows are in it, dead ones included."""
        return len(self._labels)

    def is_worth(self, asked: int, visible: int) -> bool:
        """Whether asking for so many beats looking at all: of a filter that lets `visible` pass, it meets more."""
        return self._settings.exact_below == 0 or asked * self.alive <= self._settings.largest_share * visible**2

    def add(self, vectors: Vectors, alive: Rows, start: int) -> None:
        """Take in the rows from `start` on, or all of them where now there are enough.

        Args:
            vectors: every row.
            alive: those of them that are not dead, ascending.
            start: the first new one.
        """
        if self.size:
            self._insert(vectors, alive[np.searchsorted(alive, start) :])
        else:
            self.rebuild(vectors, alive)

    def rebuild(self, vectors: Vectors, alive: Rows) -> None:
        """Begin anew with all rows, if there are enough of them."""
        self._clear()
        if len(alive) >= self._settings.exact_below:
            self._insert(vectors, alive)

    def follow(self, gone: Rows | None, vectors: Vectors, alive: Rows) -> None:
        """Let rows die; where they have new numbers, begin anew: dead vectors still cost the search steps."""
        if gone is None:
            self.rebuild(vectors, alive)
        elif self.size:
            for row in gone.tolist():
                self._graph.mark_deleted(row)
            self.alive -= len(gone)

    def _insert(self, vectors: Vectors, rows: Rows) -> None:
        """The first ones make the graph, and it doubles where it is full."""
        if not len(rows):
            return
        end = self.size + len(rows)
        if not self.size:
            self._graph.init_index(
                max(end, _SMALLEST_CAPACITY),
                M=self._settings.m,
                ef_construction=self._settings.ef_construction,
                random_seed=self._settings.seed,
            )
        elif end > self._graph.get_max_elements():
            self._graph.resize_index(max(end, 2 * self._graph.get_max_elements()))
        self._graph.add_items(vectors[rows], rows, num_threads=1)
        self._labels = np.concatenate([self._labels, rows])
        self.alive += len(rows)

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
        return list(zip(labels.astype(np.int64), 1 - distances, strict=True))

    def _passing(self, seen: VisibleRows) -> bytes:
        if self._filter is None or self._filter[0] is not seen:
            is_visible = np.zeros(int(self._labels.max()) + 1, np.bool_)
            is_visible[seen.rows] = True
            self._filter = seen, is_visible.tobytes()
        return self._filter[1]

    def blobs(self) -> dict[str, Blob]:
        """What a file keeps of it."""
        data = b""
        if self.size:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "graph"
                self._graph.save_index(str(path))
                data = plain_bytes(path)
        return {"graph": data, "graph_rows": self._labels.astype("<i8").tobytes()}

    def read(self, blobs: Mapping[str, Blob], vectors: Vectors, alive: Rows) -> None:
        """Take what `blobs` gave, in the place of what is here; begin anew where that is of no use.

        Args:
            vectors: every row.
            alive: those of them that are not dead.
        """
        self._clear()
        rows = np.frombuffer(blobs["graph_rows"], "<i8").astype(np.int64)
        # Saved where `exact_below` was larger, or by a version whose labels were no rows.
        is_of_rows = len(rows) and rows[0] >= 0 and (np.diff(rows) > 0).all() and np.isin(alive, rows).all()
        if not is_of_rows:
            self.rebuild(vectors, alive)
            return
        self._labels, self.alive = rows, len(alive)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            path.write_bytes(blobs["graph"])
            let_go(blobs["graph"])  # hnswlib has a copy of its own, and the vectors keep the file mapped
            self._graph.load_index(str(path), max_elements=max(self.size, _SMALLEST_CAPACITY))
