"""Drop what has expired."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch


@dataclass(frozen=True, slots=True)
class NotExpired:
    """Drop documents whose `valid_until` is not after the query was asked; most have none.

    Source: memory-lancedb-pro, which leaves expired rows out of what it ranks.
    """

    reads = ("valid_until",)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.filter(pl.col("valid_until").is_null() | (pl.col("valid_until") > pl.col("asked_at")))
