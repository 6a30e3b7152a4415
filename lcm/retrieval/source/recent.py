"""Candidates by age alone: what a memory without search would show."""

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch, Raw
from lcm.retrieval.source.candidates import CANDIDATE_SCHEMA


@dataclass(frozen=True, slots=True)
class Recent:
    """The last `pool_size` visible documents, newest first, the same for every query: the last-n control.

    Without a `pool_size` it is all of them: the whole-history control.
    """

    pool_size: int | None = 100
    needs_vectors = False
    gives: ClassVar[Raw] = "score"
    asks = ()

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1, or_null=True)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        newest = batch.documents.select("document_id").reverse().slice(0, self.pool_size)
        ranked = newest.with_columns(score=1.0 / pl.int_range(1, pl.len() + 1))
        pairs = batch.queries.select("query_id", "asked_at").join(ranked, how="cross", maintain_order="left_right")
        return pairs.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert")
