"""From use to documents: what being recalled changes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import polars as pl

USE_SCHEMA: dict[str, pl.DataType] = {
    "document_id": pl.String(),
    "access_count": pl.Int64(),
    "last_accessed_at": pl.Datetime("ms", "UTC"),
    "decay_tier": pl.String(),
}
"""The use of documents."""


class Reinforcement(Protocol):
    """Says how being used changes the documents that a recall returned.

    Laws: pure; only given documents change; an access count never falls; a decay tier moves one step at most.
    """

    @property
    def recalled(self) -> int:
        """How many of the first documents of an answer count as used; 0: nothing ever changes."""
        ...

    def after_recall(self, used_ids: Sequence[str], documents: pl.DataFrame, now: datetime) -> pl.DataFrame:
        """The new use of the documents that change.

        Args:
            used_ids: what the recall returned.
            documents: the visible documents, oldest first; columns as `lcm.store` names them.
            now: when it was asked.
        Returns:
            Rows of `USE_SCHEMA`.
        """
        ...
