"""Which documents are passages of one turn."""

import polars as pl

CUT_KINDS = ("message", "step")


def turn_of(documents: pl.DataFrame, *apart: str) -> pl.Series:
    """For each row of documents the number of the first row of its turn.

    Documents of kind `message` or `step` that begin with the same message are what it was cut into; any other document
    is a turn of its own.

    Args:
        documents: rows of documents, or of candidates with their documents' columns.
        apart: further columns by which rows are of different turns: `query_id`, where several queries found a document.
    """
    is_passage = pl.col("kind").is_in(CUT_KINDS) & pl.col("seq").is_not_null()
    place = ["conversation_id", "session_id", "seq", "kind", *apart]
    alone = pl.when(~is_passage).then("_row")
    return documents.with_row_index("_row").select(pl.col("_row").min().over(*place, alone))["_row"].cast(pl.Int64)
