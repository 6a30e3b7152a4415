"""A stage of one's own: leave out what is too short to tell anything."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch


@dataclass(frozen=True, slots=True)
class MyStage:
    """Keep candidates of at least `min_tokens` tokens."""

    min_tokens: int = 4

    def __post_init__(self) -> None:
        if self.min_tokens < 0:
            raise ValueError(f"min_tokens must be >= 0, got {self.min_tokens}")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.filter(pl.col("tokens") >= self.min_tokens)
