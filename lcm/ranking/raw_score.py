"""One branch's own score, unchanged."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from lcm.protocols import Batch
from lcm.ranking.ordering import best_first


@dataclass(frozen=True, slots=True)
class RawScore:
    """score = cosine or bm25 as the index gave it."""

    column: Literal["cosine", "bm25"] = "bm25"

    def __post_init__(self) -> None:
        if self.column not in ("cosine", "bm25"):
            raise ValueError(f"column must be cosine or bm25, got {self.column!r}")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(frame.with_columns(score=pl.col(self.column)))
