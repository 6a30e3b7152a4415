"""Drop what has expired."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import filtered
from lcm.retrieval.ranking.reasons import told_of

_IS_VALID = pl.col("valid_until").is_null() | (pl.col("valid_until") > pl.col("asked_at"))


@dataclass(frozen=True, slots=True)
class NotExpired:
    """Drop documents whose `valid_until` is not after the query was asked; most have none.

    Source: memory-lancedb-pro, which leaves expired rows out of what it ranks.
    """

    reads = ("valid_until",)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return filtered(frame, _IS_VALID)

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, when it expired."""
        expired = frame.filter(pl.col("valid_until") <= pl.col("asked_at"))
        return told_of(expired, pl.format("expired on {}", pl.col("valid_until").dt.date()))
