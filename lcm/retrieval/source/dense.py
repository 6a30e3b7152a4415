"""Candidates from the vector index alone."""

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from lcm.checks import check_range
from lcm.protocols.models import Embedder
from lcm.protocols.retrieval import Batch, Raw, Tiered
from lcm.retrieval.frames import beside
from lcm.retrieval.source.candidates import branch, merge
from lcm.retrieval.source.own_indexes import with_vectors_of


@dataclass(frozen=True, slots=True)
class Dense:
    """The `pool_size` nearest documents by cosine."""

    pool_size: int = 1000
    embedder: Embedder | None = None
    """Whose vectors are compared, each with each; None = those of the memory, in its index."""
    gives: ClassVar[Raw] = "cosine"

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    @property
    def needs_vectors(self) -> bool:
        return self.embedder is None

    @property
    def asks(self) -> tuple[str, ...]:
        return () if self.embedder is not None else ("vector_index",)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        if self.embedder is not None:
            batch = with_vectors_of(self.embedder, batch)
        return merge(dense_branch(batch, self.pool_size), branch([], "bm25", "lexical_rank"), batch)


def dense_branch(batch: Batch, pool_size: int) -> pl.DataFrame:
    """Rows query (its position), document_id, cosine, dense_rank; index_tier too, of an index with several widths.

    Raises:
        LcmError: if the queries could not be embedded.
    """
    if batch.embedding_error is not None:
        raise batch.embedding_error
    if not isinstance(batch.vector_index, Tiered):
        return branch(batch.vector_index.search(batch.vectors, pool_size, batch.allowed), "cosine", "dense_rank")
    found = batch.vector_index.search_tiers(batch.vectors, pool_size, batch.allowed)
    rows = branch([(ids, cosines) for ids, cosines, _ in found], "cosine", "dense_rank")
    tiers = pl.Series([tier for *_, tier in found], dtype=pl.Int64)
    return beside(rows, [tiers[rows["query"]].alias("index_tier")])
