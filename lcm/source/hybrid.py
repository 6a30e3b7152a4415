"""Candidates from both indexes, side by side."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols import Batch
from lcm.source.candidates import merge
from lcm.source.dense import dense_branch
from lcm.source.lexical import lexical_branch


@dataclass(frozen=True, slots=True)
class Hybrid:
    """The best of each index; a document in one branch's pool but not the other's lacks that other raw score.

    Pools as large as the haystack give every document its cosine.
    """

    dense_pool_size: int = 1000
    lexical_pool_size: int = 1000

    def __post_init__(self) -> None:
        for name in ("dense_pool_size", "lexical_pool_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")

    @property
    def needs_vectors(self) -> bool:
        return True

    def candidates(self, batch: Batch) -> pl.DataFrame:
        dense = dense_branch(batch, self.dense_pool_size)
        return merge(dense, lexical_branch(batch, self.lexical_pool_size), batch)
