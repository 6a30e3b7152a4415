"""Raw scores to standard scores among the query's own candidates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import beside, nulls_of, numbers_of
from lcm.retrieval.ranking.ordering import query_numbers
from lcm.retrieval.source.candidates import scored_columns

_Numbers = npt.NDArray[np.float64]
_Places = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ZScore:
    """dense_score and lexical_score = (x - mean) / standard deviation over the query's candidates.

    A candidate that shares no word with the query has BM25 0; one without a cosine takes the query's lowest. Where
    all candidates are equal the score is 0. So has NAME_score every other branch.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        near, worded = scored_columns(frame, "cosine"), scored_columns(frame, "bm25")
        scores = {**near, **worded}
        if frame.is_empty():
            return beside(frame, [pl.Series(name, [], pl.Float64) for name in scores.values()])
        queries = query_numbers(frame)
        sizes = np.bincount(queries)
        starts = np.cumsum(sizes) - sizes
        raw = {name: _with_lowest(frame[name], queries, starts) for name in near}
        raw |= {name: numbers_of(frame[name], 0.0) for name in worded}
        return beside(
            frame,
            [pl.Series(scores[name], _standardised(one, queries, sizes, starts)) for name, one in raw.items()],
        )


def _with_lowest(raw: pl.Series, queries: _Places, starts: _Places) -> _Numbers:
    """A column, where it is null the lowest of its query; 0 where that query has none."""
    if not raw.null_count():
        return numbers_of(raw)
    is_null, values = nulls_of(raw), numbers_of(raw)
    lowest = np.minimum.reduceat(np.where(is_null, np.inf, values), starts)
    return np.where(is_null, np.where(np.isinf(lowest), 0.0, lowest)[queries], values)


def _standardised(values: _Numbers, queries: _Places, sizes: _Places, starts: _Places) -> _Numbers:
    """Standard scores within each query.

    Sums run over one query's rows after another, so that their last bits, which decide between equals, are the same
    whichever other queries stand beside: a window of Polars sums in an order that depends on the whole frame.

    Args:
        values: of each row; the rows of a query stand together.
        queries: of each row, counted from 0 without gaps, ascending.
        sizes: rows of each query.
        starts: the first row of each.
    """
    centred = values - (np.add.reduceat(values, starts) / sizes)[queries]
    deviation = np.sqrt(np.add.reduceat(centred * centred, starts) / sizes)
    # A rounded mean is near, not equal.
    differ = np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)
    return np.divide(centred, deviation[queries], out=np.zeros(len(values)), where=(differ & (deviation > 0))[queries])
