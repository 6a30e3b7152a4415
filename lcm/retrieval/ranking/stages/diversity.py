"""Say a thing once: near duplicates step back behind everything else."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_range
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.lookup import vectors_of
from lcm.retrieval.ranking.ordering import best_first, places, rows_by_size

_GATHERED_FLOATS = 2_000_000
"""How many components of vectors are laid out at once: 8 MB, which caches hold."""


@dataclass(frozen=True, slots=True)
class Diversity:
    """Walk down the ranks; a document nearer than the threshold to one already taken goes behind all that are taken.

    Near is a cosine strictly above the threshold. Both groups keep their order, nothing is dropped and no score
    changes: the column `deferred` says who steps back, and `best_first` heeds it. A document without a vector is near
    to none.

    Source: memory-lancedb-pro, applyMMRDiversity.
    """

    similarity_threshold: float = 0.85

    compares_vectors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self, "similarity_threshold", ge=-1, le=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        return best_first(beside(ordered, [pl.Series("deferred", self._deferred(ordered, batch))]))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what steps back, the taken document that it is nearest to, and how near."""
        ordered = best_first(frame)
        is_deferred, rows = self._deferred(ordered, batch), []
        vectors, vector_of_row = vectors_of(batch, ordered["document_id"])
        queries, ids = ordered["query_id"].to_list(), ordered["document_id"].to_list()
        for row in np.flatnonzero(is_deferred):
            better = [other for other in range(row) if queries[other] == queries[row] and not is_deferred[other]]
            cosines = vectors[vector_of_row[better]] @ vectors[vector_of_row[row]]
            nearest = int(np.argmax(cosines))
            told = f"cosine {cosines[nearest]:.3f} to a better document, above {self.similarity_threshold:g}"
            rows.append((queries[row], ids[row], told, ids[better[nearest]]))
        return pl.DataFrame(rows, schema=REASONS_SCHEMA, orient="row")

    def _deferred(self, ordered: pl.DataFrame, batch: Batch) -> npt.NDArray[np.bool_]:
        is_deferred = np.zeros(len(ordered), dtype=np.bool_)
        if not len(ordered) or places(ordered).max() == 0:
            return is_deferred
        vectors, vector_of_row = vectors_of(batch, ordered["document_id"])
        # A query's rows are compared in a matrix of their own size: padded, they could round in another way.
        for rows in rows_by_size(ordered, _GATHERED_FLOATS // max(1, vectors.shape[1])):
            is_deferred[rows] = _deferred(vectors[vector_of_row[rows]], self.similarity_threshold)
        return is_deferred


def _deferred(vectors: Vectors, threshold: float) -> npt.NDArray[np.bool_]:
    """Which rows step back.

    Args:
        vectors: shape (queries, rows, dim), rows in rank order.
        threshold: of the cosine.
    Returns:
        Shape (queries, rows).
    """
    # Copied, for BLAS sends small matrices that share their memory a way that takes ten times as long.
    cosines = np.matmul(vectors, np.ascontiguousarray(vectors.transpose(0, 2, 1)))
    is_near = np.tril(cosines > threshold, -1)
    has_vector = np.diagonal(cosines, axis1=1, axis2=2) > 0
    if not has_vector.all():
        is_near &= has_vector[:, :, np.newaxis] & has_vector[:, np.newaxis]
    later, earlier = _pairs(is_near)
    is_deferred = np.zeros(has_vector.size, dtype=np.bool_)
    # In rounds, each for all ranks at once: near duplicates are few, and chains of them short.
    while len(later):
        is_open = np.zeros(has_vector.size, dtype=np.bool_)
        is_open[later] = True
        is_deferred[later[~is_open[earlier]]] = True
        undecided = ~(is_deferred[later] | is_deferred[earlier])
        later, earlier = later[undecided], earlier[undecided]
    return is_deferred.reshape(has_vector.shape)


def _pairs(is_near: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of every near pair the later row and the earlier one, counted over all queries."""
    size = is_near.shape[1]
    later, column = np.divmod(np.flatnonzero(is_near), size)
    return later, later - later % size + column
