"""Raw scores to standard scores among the query's own candidates."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
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
        near, worded = scored_columns(frame, "cosine"), scored_columns(frame, "bm25")
        raw = frame.select(*map(_with_lowest, near), *(pl.col(column).fill_null(0.0) for column in worded))
        queries = frame["query_id"].rle_id().to_numpy()
        scores = {**near, **worded}
        return frame.with_columns(
            pl.Series(scores[column.name], _standardised(column.to_numpy(), queries)) for column in raw
        )


def _with_lowest(raw: str) -> pl.Expr:
    return pl.col(raw).fill_null(pl.col(raw).min().over("query_id")).fill_null(0.0)


def _standardised(values: npt.NDArray[np.float64], queries: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """Standard scores within each query.

    Sums run over one query's rows after another, so that their last bits, which decide between equals, are the same
    whichever other queries stand beside: a window of Polars sums in an order that depends on the whole frame.

    Args:
        values: of each row; the rows of a query stand together.
        queries: of each row, counted from 0 without gaps, ascending.
    """
    if not len(values):
        return values
    sizes = np.bincount(queries)
    starts = np.cumsum(sizes) - sizes
    centred = values - (np.add.reduceat(values, starts) / sizes)[queries]
    deviation = np.sqrt(np.add.reduceat(centred * centred, starts) / sizes)
    differ = np.maximum.reduceat(values, starts) > np.minimum.reduceat(
        values, starts
    )  # a rounded mean is near, not equal
    return np.divide(centred, deviation[queries], out=np.zeros(len(values)), where=(differ & (deviation > 0))[queries])
