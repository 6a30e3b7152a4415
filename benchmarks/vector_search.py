"""Many queries in one call to the vector indexes, against hnswlib and numpy themselves."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial

import hnswlib
import numpy as np
import numpy.typing as npt

from benchmarks import corpus
from benchmarks.search import TARGET, Search
from benchmarks.timing import Comparison
from lcm.retrieval.vector_index.exact import Exact, to_grid
from lcm.retrieval.vector_index.hnsw import Hnsw

_TOLERANCE = 1e-5  # of a cosine: the bare sides sum in float32

_Bare = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]
"""Places and cosines, a row a query, best first."""


@dataclass(frozen=True, slots=True)
class HnswSearch(Search):
    """`HnswIndex.search` against `hnswlib.Index.knn_query` on an equal graph, as wide, on as many threads.

    Ours names its results and scores its candidates again, exactly.
    """

    index: Hnsw
    dim: int

    def __post_init__(self) -> None:
        Search.__post_init__(self)
        least = max(self.index.exact_below, math.ceil(self._width / self.index.largest_share))
        if self.documents < least:
            raise ValueError(f"documents must be >= {least} for the graph to be asked, got {self.documents}")

    @property
    def _width(self) -> int:
        return max(self.index.ef, self.index.ef_a_result * self.k)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        vectors = corpus.unit_vectors(self.documents, self.dim, seed)
        queries = corpus.unit_vectors(self.queries, self.dim, seed + 1)
        index, exact = self.index.build(self.dim, incidents=Counter()), Exact().build(self.dim, incidents=Counter())
        index.add(self.ids, vectors)
        exact.add(self.ids, vectors)
        graph = hnswlib.Index("ip", self.dim)
        graph.init_index(
            self.documents, M=self.index.m, ef_construction=self.index.ef_construction, random_seed=self.index.seed
        )
        graph.add_items(to_grid(vectors, self.dim), num_threads=1)
        graph.set_ef(self._width)

        def bare() -> _Bare:
            places, distances = graph.knn_query(queries, self.k)
            return places, 1 - distances

        def facts() -> dict[str, float]:
            found, wanted = index.search(queries, self.k), exact.search(queries, self.k)
            hits = sum(len(set(mine) & set(best)) for (mine, _), (best, _) in zip(found, wanted, strict=True))
            return {"recall": hits / (self.queries * self.k)}

        ours = partial(index.search, queries, self.k)
        return self.compared(
            "hnsw search", ours, bare, _cosines, repeats, tolerance=_TOLERANCE, target=TARGET, facts=facts
        )


@dataclass(frozen=True, slots=True)
class ExactSearch(Search):
    """`ExactIndex.search` against a float32 product in numpy and `argpartition`: what exactness to the bit costs."""

    dim: int

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        vectors = corpus.unit_vectors(self.documents, self.dim, seed)
        queries = corpus.unit_vectors(self.queries, self.dim, seed + 1)
        index = Exact().build(self.dim, incidents=Counter())
        index.add(self.ids, vectors)

        def bare() -> _Bare:
            cosines = queries @ vectors.T
            best = np.argpartition(cosines, -self.k, axis=1)[:, -self.k :]
            values = np.take_along_axis(cosines, best, axis=1)
            order = np.argsort(-values, axis=1)
            return np.take_along_axis(best, order, axis=1).astype(np.uint64), np.take_along_axis(values, order, axis=1)

        ours = partial(index.search, queries, self.k)
        return self.compared("exact search", ours, bare, _cosines, repeats, tolerance=_TOLERANCE, target=None)


def _cosines(found: _Bare) -> list[npt.NDArray[np.float32]]:
    return list(found[1])
