"""Raw scores to standard scores among the query's own candidates."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.source.candidates import scored_columns


@dataclass(frozen=True, slots=True)
class ZScore:
    """dense_score and lexical_score = (x - mean) / standard deviation over the query's candidates.

    A candidate that shares no word with the query has BM25 0; one without a cosine takes the query's lowest. Where
    all candidates are equal the score is 0. So has NAME_score every other branch.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        near, worded = scored_columns(frame, "cosine").items(), scored_columns(frame, "bm25").items()
        return frame.with_columns(
            *(_standardised(_with_lowest(raw)).alias(score) for raw, score in near),
            *(_standardised(pl.col(raw).fill_null(0.0)).alias(score) for raw, score in worded),
        )


def _with_lowest(raw: str) -> pl.Expr:
    return pl.col(raw).fill_null(pl.col(raw).min().over("query_id")).fill_null(0.0)


def _standardised(column: pl.Expr) -> pl.Expr:
    mean, deviation = column.mean().over("query_id"), column.std(ddof=0).over("query_id")
    return pl.when(deviation > 0).then((column - mean) / deviation).otherwise(0.0)
