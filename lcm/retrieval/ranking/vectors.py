"""The vectors of a frame's documents, and the rows to lay them out by."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.ordering import is_one_query


def document_vectors(frame: pl.DataFrame, batch: Batch) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Ask for the vector of each document once.

    Returns:
        The vectors, and for each row of the frame the position of its own.
    """
    ids = frame["document_id"]
    unique = ids if is_one_query(frame) else ids.unique(maintain_order=True)  # a query has a document once
    vectors = batch.document_vectors(unique.to_list())
    if len(unique) == len(ids):
        return vectors, np.arange(len(ids))
    known = pl.DataFrame({"id": unique}).with_row_index("position")
    rows = pl.DataFrame({"id": ids}).join(known, on="id", how="left", maintain_order="left")
    return vectors, rows["position"].cast(pl.Int64).to_numpy()


def rows_by_size(frame: pl.DataFrame, rows_at_once: int) -> Iterator[npt.NDArray[np.int64]]:
    """Rows of several queries that have equally many, side by side; all rows come once.

    Args:
        frame: candidates, the rows of a query together.
        rows_at_once: about how many are given at a time; a query is never cut.
    Returns:
        Matrices of row numbers, shape (queries, rows of each).
    """
    if is_one_query(frame):
        yield np.arange(len(frame))[np.newaxis]
        return
    sizes = frame["query_id"].rle().struct.field("len").cast(pl.Int64).to_numpy()
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes):
        alike = starts[sizes == size]
        at_once = max(1, rows_at_once // size)
        for first in range(0, len(alike), at_once):
            yield alike[first : first + at_once, np.newaxis] + np.arange(size)
