"""Drop what has expired."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.columns import Columns
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import kept_rows, told_of


@dataclass(frozen=True, slots=True)
class NotExpired:
    """Drop documents whose `valid_until` is not after the query was asked; most have none.

    Source: memory-lancedb-pro, which leaves expired rows out of what it ranks.
    """

    reads = ("valid_until",)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        columns = Columns(frame)
        return kept_rows(frame, columns.numbers("valid_until", missing=np.inf) > columns.numbers("asked_at"))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, when it expired."""
        expired = frame.filter(pl.col("valid_until") <= pl.col("asked_at"))
        return told_of(expired, pl.format("expired on {}", pl.col("valid_until").dt.date()))
