"""What stages tell of the rows that they drop or put behind others."""

import polars as pl

from lcm.protocols.retrieval import REASONS_SCHEMA


def told_of(rows: pl.DataFrame, reason: pl.Expr) -> pl.DataFrame:
    """Rows of `REASONS_SCHEMA`: a reason, worked out of each row, that no other document gives."""
    return rows.select("query_id", "document_id", reason=reason, like_id=pl.lit(None, pl.String)).cast(
        pl.Schema(REASONS_SCHEMA)
    )
