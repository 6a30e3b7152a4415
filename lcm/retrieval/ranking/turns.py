"""Which documents are passages of one turn."""

from collections.abc import Iterable

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
        places = zip(*(documents[name].to_list() for name in place), strict=True)
        return pl.Series("_row", _firsts(places), pl.Int64)
    is_passage = pl.col("kind").is_in(CUT_KINDS).fill_null(False) & pl.col("seq").is_not_null()
    alone = pl.when(~is_passage).then("_row")
    return documents.with_row_index("_row").select(pl.col("_row").min().over(*place, alone))["_row"].cast(pl.Int64)


def _firsts(places: Iterable[tuple[object, ...]]) -> list[int]:
    """The same, row by row, of few rows."""
    firsts: dict[tuple[object, ...], int] = {}
    return [
        firsts.setdefault(place, row) if place[2] is not None and place[3] in CUT_KINDS else row
        for row, place in enumerate(places)
    ]
