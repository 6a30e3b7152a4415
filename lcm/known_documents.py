"""The documents of a workspace in memory, and which of them a query may see."""

from bisect import bisect_right
from datetime import datetime

import polars as pl

from lcm.records import DEFAULT_RATING

_SANITISED = {"importance": DEFAULT_RATING, "confidence": DEFAULT_RATING}
"""What takes the place of a rating that is no number."""


class KnownDocuments:
    """A snapshot of the store's documents, by `valid_from`."""

    def __init__(self, documents: pl.DataFrame) -> None:
        """Take a snapshot; ratings that are no number, which only a foreign hand can store, are replaced."""
        broken = ~pl.all_horizontal(pl.col(*_SANITISED).is_finite().fill_null(False))
        self.sanitised = documents.select(broken.sum()).item() if len(documents) else 0
        if self.sanitised:
            documents = documents.with_columns(
                pl.when(pl.col(name).is_finite()).then(name).otherwise(default).alias(name)
                for name, default in _SANITISED.items()
            )
        self.frame = documents
        self._starts: list[datetime] = documents["valid_from"].to_list()
        self._ends: list[datetime] = documents["invalidated_at"].drop_nulls().sort().to_list()

    def moment(self, at: datetime) -> tuple[int, int]:
        """How many documents had begun and how many had ended then: what is visible at equal moments is the same."""
        return bisect_right(self._starts, at), bisect_right(self._ends, at)

    def visible(self, at: datetime) -> pl.DataFrame:
        """The documents that stood then."""
        begun, ended = self.moment(at)
        documents = self.frame.head(begun)
        if ended:
            documents = documents.filter(pl.col("invalidated_at").is_null() | (pl.col("invalidated_at") > at))
        return documents

    def with_use(self, use: pl.DataFrame) -> "KnownDocuments":
        """The same documents after use: columns document_id, access_count, last_accessed_at, decay_tier."""
        return KnownDocuments(self.frame.update(use, on="document_id", include_nulls=True))
