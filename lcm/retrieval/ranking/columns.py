"""Evidence to columns: values for every document of a haystack, laid beside the rows of the frame."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, haystack_of

_FLAT = 1e-9  # spread below which nothing stands out
_GRID = 2.0**20


def with_evidence(
    frame: pl.DataFrame, batch: Batch, names: Sequence[str], evidence: Callable[[Haystack, int], Sequence[Numbers]]
) -> pl.DataFrame:
    """Add Float64 columns; a row whose document the batch does not show gets 0.

    Args:
        frame: candidates, the rows of a query together.
        batch: what they were asked of.
        names: of the columns.
        evidence: gives for the query in one row of `batch.queries` one array a column, one value a turn, which all its
            passages share, or one a document.
    """
    haystack = haystack_of(batch.documents)
    places = np.fromiter(
        (haystack.positions.get(document_id, -1) for document_id in frame["document_id"]), np.int64, len(frame)
    )
    rows = {query_id: row for row, query_id in enumerate(batch.queries["query_id"])}
    found = np.zeros((len(names), len(frame)))
    first = 0
    runs = frame["query_id"].rle().struct.unnest()
    for length, query_id in zip(runs["len"], runs["value"], strict=True):
        here = places[first : first + length]
        is_known = here >= 0
        if is_known.any():
            values = evidence(haystack, rows[query_id])
            for column, of_one in enumerate(values):
                of_documents = of_one[haystack.turns] if len(of_one) == len(haystack) else of_one
                found[column, first : first + length][is_known] = of_documents[here[is_known]]
        first += length
    return frame.with_columns(pl.Series(name, column) for name, column in zip(names, found, strict=True))


def standardised(values: Numbers) -> Numbers:
    """(x - mean) / standard deviation; 0 where all are equal."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > _FLAT else np.zeros_like(values)


def on_grid(rows: Numbers) -> Numbers:
    """Rows of at most unit length, rounded to multiples of 2 ** -20: their dot products are exact in double precision,
    and so the same however many threads add them up."""
    rounded: Numbers = np.round(rows * _GRID) / _GRID
    return rounded
