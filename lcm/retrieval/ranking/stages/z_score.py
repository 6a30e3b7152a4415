"""Raw scores to standard scores among the query's own candidates."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.ranking.ordering import of_queries, query_numbers
from lcm.retrieval.source.candidates import scored_columns


@dataclass(frozen=True, slots=True)
class ZScore:
    """dense_score and lexical_score = (x - mean) / standard deviation over the query's candidates.

    A candidate that shares no word with the query has BM25 0; one without a cosine takes the query's lowest. Where
    all candidates are equal the score is 0. So has NAME_score every other branch.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        near, worded = scored_columns(frame, "cosine"), scored_columns(frame, "bm25")
        scores = {**near, **worded}
        columns, queries = Columns(frame), query_numbers(frame)
        raw = {name: _with_lowest(columns.numbers(name), queries) for name in near}
        raw |= {name: columns.numbers(name, missing=0.0) for name in worded}
        return beside(frame, [pl.Series(scores[name], _standardised(one, queries)) for name, one in raw.items()])


def _with_lowest(values: Numbers, queries: npt.NDArray[np.int64]) -> Numbers:
    """A column, where it is missing the lowest of its query; 0 where that query has none."""
    is_missing = np.isnan(values)
    if not is_missing.any():
        return values
    return np.where(is_missing, np.nan_to_num(of_queries(np.fmin, values, queries)), values)


def _standardised(values: Numbers, queries: npt.NDArray[np.int64]) -> Numbers:
    """Standard scores within each query."""
    sizes = of_queries(np.add, np.ones(len(values)), queries)
    centred = values - of_queries(np.add, values, queries) / sizes
    deviation = np.sqrt(of_queries(np.add, centred * centred, queries) / sizes)
    # A rounded mean is near, not equal.
    differ = of_queries(np.maximum, values, queries) > of_queries(np.minimum, values, queries)
    return np.divide(centred, deviation, out=np.zeros(len(values)), where=differ & (deviation > 0))
