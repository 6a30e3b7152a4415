"""Which documents are passages of one turn."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

CUT_KINDS = ("message", "step")
FEW = 1000
"""Rows that are read one by one sooner than a window over them is planned."""


def turn_of(documents: pl.DataFrame, *apart: str) -> pl.Series:
    """For each row of documents the number of the first row of its turn.

    Documents of kind `message` or `step` that begin with the same message are what it was cut into; any other document
    is a turn of its own.

    Args:
        documents: rows of documents, or of candidates with their documents' columns.
        apart: further columns by which rows are of different turns: `query_id`, where several queries found a document.
    """
    place = ["conversation_id", "session_id", "seq", "kind", *apart]
    if len(documents) <= FEW:
        return pl.Series("_row", _firsts(*(documents[name].to_list() for name in place)))
    is_passage = pl.col("kind").is_in(CUT_KINDS).fill_null(False) & pl.col("seq").is_not_null()
    alone = pl.when(~is_passage).then("_row")
    return documents.with_row_index("_row").select(pl.col("_row").min().over(*place, alone))["_row"].cast(pl.Int64)


def _firsts(
    conversations: Sequence[object], sessions: Sequence[object], seqs: Sequence[object], kinds: Sequence[object],
    *apart: Sequence[object],
) -> npt.NDArray[np.int64]:  # fmt: skip
    """The same, row by row, of few rows."""
    rows = np.arange(len(kinds))
    is_passage = np.array([kind in CUT_KINDS for kind in kinds], np.bool_)
    if None in seqs:
        is_passage &= np.array([seq is not None for seq in seqs], np.bool_)
    if not is_passage.any():
        return rows
    places = list(zip(conversations, sessions, seqs, kinds, *apart, strict=True))
    firsts = dict(zip(reversed(places), reversed(range(len(places))), strict=True))  # of equal ones the first stays
    return np.where(is_passage, np.fromiter(map(firsts.__getitem__, places), np.int64, len(places)), rows)
