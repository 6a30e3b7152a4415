"""Uses of documents, counted."""

from collections.abc import Sequence
from datetime import datetime

import polars as pl

_INSTANT = pl.Datetime("ms", "UTC")
USE_SCHEMA: dict[str, pl.DataType] = {
    "document_id": pl.String(),
    "access_count": pl.Int64(),
    "last_accessed_at": _INSTANT,
    "decay_tier": pl.String(),
}
_MOST = 10_000
"""Accesses that are counted."""


def used(documents: pl.DataFrame, used_ids: Sequence[str], recalled: int, now: datetime) -> pl.DataFrame:
    """Count an access of the first `recalled` of these ids; `_is_used` says which documents they are."""
    used = list(dict.fromkeys(used_ids))[:recalled]
    count = pl.col("access_count").fill_null(0)
    return documents.with_columns(_is_used=pl.col("document_id").is_in(used)).with_columns(
        access_count=count + (pl.col("_is_used") & (count < _MOST)).cast(pl.Int64),
        last_accessed_at=pl.when("_is_used")
        .then(pl.max_horizontal("last_accessed_at", pl.lit(now, _INSTANT)))
        .otherwise("last_accessed_at"),
    )
