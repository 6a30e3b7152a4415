"""Evidence to columns: values for every document of a haystack, laid beside the rows of the frame."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, haystack_of
from lcm.retrieval.ranking.ordering import is_one_query

_FLAT = 1e-9  # spread below which nothing stands out
NOTHING = 1e-6
"""A vector that is shorter says nothing."""
_GRID = 2.0**20
_ROWS_AT_ONCE = 1024  # in double precision, they and a query lie in the processor's cache
Rows = npt.NDArray[np.float32]


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
    for length, query_id in _runs(frame):
        here = places[first : first + length]
        is_known = here >= 0
        if is_known.any():
            documents = here[is_known]
            turns = haystack.turns[documents]
            for column, of_one in enumerate(evidence(haystack, rows[query_id])):
                found[column, first : first + length][is_known] = of_one[
                    turns if len(of_one) == len(haystack) else documents
                ]
        first += length
    return frame.with_columns(pl.Series(name, column) for name, column in zip(names, found, strict=True))


def _runs(frame: pl.DataFrame) -> Iterable[tuple[int, str]]:
    """How many rows stand together, and of which query."""
    if is_one_query(frame):
        return [(len(frame), frame["query_id"][0])]
    runs = frame["query_id"].rle().struct.unnest()
    return zip(runs["len"], runs["value"], strict=True)


def standardised(values: Numbers) -> Numbers:
    """(x - mean) / standard deviation; 0 where all are equal."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > _FLAT else np.zeros_like(values)


def on_grid(rows: Numbers) -> Numbers:
    """Rows of at most unit length, rounded to multiples of 2 ** -20: their dot products are exact in double precision,
    and so the same however many threads add them up."""
    rounded: Numbers = np.round(rows * _GRID) / _GRID
    return rounded


def units(rows: Numbers) -> Rows:
    """Rows of unit length, on the grid, which single precision holds exactly; what is next to nothing becomes nothing.

    The rows given are overwritten.
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.where(lengths > NOTHING, _GRID / np.maximum(lengths, NOTHING), 0.0)
    np.round(rows, out=rows)
    rows /= _GRID
    return rows.astype(np.float32)


def dot_products(rows: Rows, query: Numbers) -> Numbers:
    """Of each row with a query, both on the grid: exact."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        np.dot(rows[part].astype(np.float64), query, out=found[part])
    return found
