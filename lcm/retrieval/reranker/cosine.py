"""The score with the cosine beside it: reranking that needs no model."""

import logging
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_weights
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.lookup import queries_of, vectors_of
from lcm.retrieval.ranking.ordering import best_first, rows_by_size
from lcm.retrieval.ranking.stages.clamp import clamp01
from lcm.retrieval.reranker.blending import beyond, check_window, first

_log = logging.getLogger(__name__)
_ROWS_AT_ONCE = 256
"""How many rows are multiplied at once: less than 1 MB in float64, which caches hold."""


@dataclass(frozen=True, slots=True)
class Cosine:
    """score = score_weight f + cosine_weight c in [0, 1], f the score before, c the cosine of query and document.

    c is below 0 where they point apart, so a row can lose. A blend that is not a number leaves f, and an f that is none
    becomes 0. Puts c into reranker_score.

    One width for all: where the documents' vectors are not as wide as the queries', every row keeps its score, and that
    is counted in the batch as rerank_without_cosine. An index here has one width, so it happens only where the queries
    could not be embedded.

    Source: memory-lancedb-pro, rerankResults without a cross-encoder.
    """

    window: int | None = 40
    """How many candidates of a query are kept; None = all."""
    score_weight: float = 0.7
    cosine_weight: float = 0.3
    reads_unit_scores = True
    needs_vectors = True

    def __post_init__(self) -> None:
        check_window(self.window)
        check_weights(self, "score_weight", "cosine_weight")

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how many are kept."""
        return beyond(frame, self.window, batch)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        kept = first(frame, self.window, batch)
        cosines = _cosines(kept, batch)
        if cosines is None:
            _log.warning("the queries have no vectors as wide as the documents': reranking by cosine is left out")
            batch.incidents["rerank_without_cosine"] += kept["query_id"].n_unique()
            return kept.with_columns(reranker_score=pl.lit(None, pl.Float64))
        score = Columns(kept).numbers("score")
        blended = clamp01(self.score_weight * score + self.cosine_weight * cosines, score)
        return best_first(beside(kept, [pl.Series("reranker_score", cosines), pl.Series("score", blended)]))


def _cosines(frame: pl.DataFrame, batch: Batch) -> Numbers | None:
    """The cosine of each row, None where the widths differ."""
    if frame.is_empty():
        return np.empty(0)
    if batch.embedding_error is not None:
        return None
    documents, document_of_row = vectors_of(batch, frame["document_id"])
    if documents.shape[1] != batch.vectors.shape[1]:
        return None
    query_of_row, queries = queries_of(frame, batch).to_numpy(), batch.vectors.astype(np.float64)
    cosines = np.empty(len(frame))
    for rows in rows_by_size(frame, _ROWS_AT_ONCE):
        found = documents[document_of_row[rows]].astype(np.float64)
        cosines[rows] = np.einsum("qrd,qd->qr", found, queries[query_of_row[rows[:, 0]]])
    return cosines
