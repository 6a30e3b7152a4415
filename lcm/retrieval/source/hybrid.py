"""Candidates from both indexes, side by side."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.retrieval import INDEXES, Batch
from lcm.retrieval.source.candidates import branch, merge
from lcm.retrieval.source.dense import dense_branch
from lcm.retrieval.source.lexical import FAILURES, lexical_branch
from lcm.retrieval.source.query_expansion import QueryExpansion

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hybrid:
    """The best of each index; a document in one branch's pool but not the other's lacks that other raw score.

    Pools as large as the haystack give every document its cosine. Where one branch fails the other answers alone: a
    warning is logged and the failure counted. Where both fail, so does the search.
    """

    dense_pool_size: int = 1000
    lexical_pool_size: int = 1000
    expansion: QueryExpansion | None = None
    """Adds words to the lexical branch's query; None = the query as it is."""
    containment: bool = False
    """Where no word is found, look for the whole query inside the texts."""
    needs_vectors = True
    asks = INDEXES

    def __post_init__(self) -> None:
        check_range(self, "dense_pool_size", "lexical_pool_size", ge=1)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        dense, dense_error = tried("dense", lambda: dense_branch(batch, self.dense_pool_size), batch)
        lexical, lexical_error = tried(
            "lexical",
            lambda: lexical_branch(batch, self.lexical_pool_size, self.expansion, self.containment),
            batch,
        )
        if dense_error and lexical_error:
            raise LcmError(f"both branches failed: dense: {dense_error}; lexical: {lexical_error}") from lexical_error
        if dense is None:
            dense = branch([], "cosine", "dense_rank")
        if lexical is None:
            lexical = branch([], "bm25", "lexical_rank")
        return merge(dense, lexical, batch)


def tried(
    name: str, search: Callable[[], pl.DataFrame], batch: Batch, others: str = "the other one answers alone"
) -> tuple[pl.DataFrame | None, Exception | None]:
    """What a branch found, or why it failed: logged, and counted among what was survived."""
    try:
        return search(), None
    except FAILURES as error:
        if is_of_machine(error):
            raise
        _log.warning("the %s branch failed, %s: %s", name, others, error)
        batch.incidents[f"{name} branch failed"] += len(batch.queries)
        return None, error
