"""Candidates from the text index alone."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols import Batch
from lcm.source.candidates import branch, merge


@dataclass(frozen=True, slots=True)
class Lexical:
    """The `pool_size` best documents by BM25."""

    pool_size: int = 1000

    def __post_init__(self) -> None:
        if self.pool_size < 1:
            raise ValueError(f"pool_size must be >= 1, got {self.pool_size}")

    @property
    def needs_vectors(self) -> bool:
        return False

    def candidates(self, batch: Batch) -> pl.DataFrame:
        return merge(branch([], "cosine", "dense_rank"), lexical_branch(batch, self.pool_size), batch)


def lexical_branch(batch: Batch, pool_size: int) -> pl.DataFrame:
    """Rows query (its position), document_id, bm25, lexical_rank."""
    answers = batch.text_index.search(batch.queries["text"].to_list(), pool_size, batch.allowed)
    return branch(answers, "bm25", "lexical_rank")
