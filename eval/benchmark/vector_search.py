"""Many queries in one call to the vector indexes, against hnswlib and numpy themselves."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import hnswlib
import numpy as np
import numpy.typing as npt

from eval.benchmark import corpus
from eval.benchmark.search import TARGET, check_scores, check_sizes
from eval.benchmark.timing import Comparison, compared_times, take_turns
from lcm.retrieval.indexing import Ranked
from lcm.retrieval.vector_index.exact import Exact, to_grid
from lcm.retrieval.vector_index.hnsw import CANDIDATES_A_RESULT, LARGEST_SHARE, Hnsw

_TOLERANCE = 1e-5  # of a cosine: the bare sides sum in float32

_Bare = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]
"""Places and cosines, a row a query, best first."""


@dataclass(frozen=True, slots=True)
class HnswSearch:
    """`HnswIndex.search` against `hnswlib.Index.knn_query` on an equal graph, as wide, on as many threads.

    Ours names its results and scores its candidates again, exactly.
    """

    index: Hnsw
    documents: int
    queries: int
    k: int
    dim: int

    def __post_init__(self) -> None:
        check_sizes(self.documents, self.queries, self.k)
        least = max(self.index.exact_below, math.ceil(self._width / LARGEST_SHARE))
        if self.documents < least:
            raise ValueError(f"documents must be >= {least} for the graph to be asked, got {self.documents}")

    @property
    def _width(self) -> int:
        return max(self.index.ef, CANDIDATES_A_RESULT * self.k)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        vectors = corpus.unit_vectors(self.documents, self.dim, seed)
        queries = corpus.unit_vectors(self.queries, self.dim, seed + 1)
        ids = [f"d{i}" for i in range(self.documents)]
        index, exact = self.index.build(self.dim, incidents=Counter()), Exact().build(self.dim, incidents=Counter())
        index.add(ids, vectors)
        exact.add(ids, vectors)
        graph = hnswlib.Index("ip", self.dim)
        graph.init_index(
            self.documents, M=self.index.m, ef_construction=self.index.ef_construction, random_seed=self.index.seed
        )
        graph.add_items(to_grid(vectors, self.dim), num_threads=1)
        graph.set_ef(self._width)

        def bare() -> _Bare:
            places, distances = graph.knn_query(queries, self.k)
            return places, 1 - distances

        rounds = take_turns(lambda: lambda: index.search(queries, self.k), lambda: bare, _check, repeats)
        found, wanted = index.search(queries, self.k), exact.search(queries, self.k)
        hits = sum(len(set(mine) & set(best)) for (mine, _), (best, _) in zip(found, wanted, strict=True))
        facts = {"recall": hits / (self.queries * self.k), "documents": self.documents, "k": self.k}
        return [compared_times("hnsw search", "µs a query", 1e6 / self.queries, rounds, TARGET, facts)]


@dataclass(frozen=True, slots=True)
class ExactSearch:
    """`ExactIndex.search` against a float32 product in numpy and `argpartition`: what exactness to the bit costs."""

    documents: int
    queries: int
    k: int
    dim: int

    def __post_init__(self) -> None:
        check_sizes(self.documents, self.queries, self.k)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        vectors = corpus.unit_vectors(self.documents, self.dim, seed)
        queries = corpus.unit_vectors(self.queries, self.dim, seed + 1)
        index = Exact().build(self.dim, incidents=Counter())
        index.add([f"d{i}" for i in range(self.documents)], vectors)

        def bare() -> _Bare:
            cosines = queries @ vectors.T
            best = np.argpartition(cosines, -self.k, axis=1)[:, -self.k :]
            values = np.take_along_axis(cosines, best, axis=1)
            order = np.argsort(-values, axis=1)
            return np.take_along_axis(best, order, axis=1).astype(np.uint64), np.take_along_axis(values, order, axis=1)

        rounds = take_turns(lambda: lambda: index.search(queries, self.k), lambda: bare, _check, repeats)
        facts = {"documents": self.documents, "k": self.k}
        return [compared_times("exact search", "µs a query", 1e6 / self.queries, rounds, None, facts)]


def _check(ours: Sequence[Ranked], bare: _Bare) -> None:
    check_scores(ours, list(bare[1]), _TOLERANCE)
