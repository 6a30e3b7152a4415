"""Raw scores to standard scores among the query's own candidates."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch


@dataclass(frozen=True, slots=True)
class ZScore:
    """dense_score and lexical_score = (x - mean) / standard deviation over the query's candidates.

    A candidate that shares no word with the query has BM25 0; one without a cosine takes the query's lowest. Where
    all candidates are equal the score is 0.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        cosine = pl.col("cosine").fill_null(pl.col("cosine").min().over("query_id")).fill_null(0.0)
        return frame.with_columns(
            dense_score=_standardised(cosine), lexical_score=_standardised(pl.col("bm25").fill_null(0.0))
        )


def _standardised(column: pl.Expr) -> pl.Expr:
    mean, deviation = column.mean().over("query_id"), column.std(ddof=0).over("query_id")
    return pl.when(deviation > 0).then((column - mean) / deviation).otherwise(0.0)
