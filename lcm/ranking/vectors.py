"""The vectors of a frame's documents."""

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols import Batch, Vectors
from lcm.ranking.ordering import is_one_query


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
