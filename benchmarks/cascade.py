"""Many queries in one call to index tiers, against the same cascade in numpy alone."""

from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.search import Search
from benchmarks.timing import Comparison, Target
from lcm.protocols.models import Vectors
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers

TARGET = Target("at most", 1.5)
_TOLERANCE = 1e-5  # of a cosine: the bare side sums in float32
_FALL = 0.95  # of the spread from one axis to the next: narrow vectors tell something, as trained ones do

_Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cascade(Search):
    """`HnswTiersIndex.search` against float32 products, `argpartition` and the same exits by the same margins.

    Vectors are cut as they are, and every width is looked at whole, the last in float32: ours pays for exactness.
    """

    index: HnswTiers
    dim: int

    def __post_init__(self) -> None:
        Search.__post_init__(self)
        least = int(self._candidates / self.index.candidates_share)
        most = min(self.index.flat_below, self.index.exact_below)
        if not least <= self.documents < most:
            raise ValueError(f"documents must be >= {least} and < {most} to be looked at whole, got {self.documents}")
        if self.index.rotation != "none" or self.index.exit_by != "margin":
            raise ValueError("index must have rotation 'none' and exit_by 'margin'")

    @property
    def _candidates(self) -> int:
        return max(self.index.candidates, self.index.candidates_a_result * self.k)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        vectors, queries = self._vectors(self.documents, seed), self._vectors(self.queries, seed + 1)
        index = self.index.build(self.dim, incidents=Counter())
        index.add(self.ids, vectors)
        narrow = [(width, _cut(vectors, width)) for width in index.widths[:-1]]

        def bare() -> _Scores:
            scores = np.empty((self.queries, self.k), np.float32)
            waiting = np.arange(self.queries)
            for (width, rows), threshold in zip(narrow, self.index.exit_thresholds, strict=False):
                asked = queries[waiting]
                products = _cut(asked, width) @ rows.T
                places = np.argpartition(products, -self._candidates, axis=1)[:, -self._candidates :]
                last = np.take_along_axis(products, places, axis=1).min(axis=1)
                exact = np.matmul(vectors[places], asked[:, :, np.newaxis])[:, :, 0]
                best = -np.sort(-exact, axis=1)[:, : self.k]
                is_exit = best[:, -1] - last >= threshold
                scores[waiting[is_exit]] = best[is_exit]
                waiting = waiting[~is_exit]
            if len(waiting):
                scores[waiting] = -np.sort(
                    -np.partition(queries[waiting] @ vectors.T, -self.k, axis=1)[:, -self.k :], axis=1
                )
            return scores

        def facts() -> dict[str, float]:
            answered = [width for *_, width in index.search_tiers(queries, self.k)]
            return {f"share_{width}": answered.count(width) / len(answered) for width in index.widths}

        ours = partial(index.search, queries, self.k)
        return self.compared("cascade", ours, bare, list, repeats, tolerance=_TOLERANCE, target=TARGET, facts=facts)

    def _vectors(self, count: int, seed: int) -> Vectors:
        drawn = np.random.default_rng(seed).standard_normal((count, self.dim)) * _FALL ** np.arange(self.dim)
        rows: Vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
        return rows


def _cut(vectors: Vectors, width: int) -> Vectors:
    rows: Vectors = vectors[:, :width] / np.linalg.norm(vectors[:, :width], axis=1, keepdims=True)
    return rows
