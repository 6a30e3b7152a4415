"""Candidates by what their whole session scores."""

from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from lcm.checks import check_choice, check_range
from lcm.protocols.retrieval import Batch, Branch, Raw
from lcm.retrieval.source.candidates import CANDIDATE_SCHEMA, asked, check_branch
from lcm.retrieval.source.lexical import Lexical

_SESSION = ("conversation_id", "session_id")


@dataclass(frozen=True, slots=True)
class BySession:
    """Every document of a session has the score of the session: the best, or the sum, of what a branch gives its
    documents. Those of one session stand in the order that the branch gives them, then as they were said.

    A session of which the branch returns nothing is not returned.
    """

    branch: Branch = field(default_factory=Lexical)
    lends: Literal["best", "sum"] = "best"
    pool_size: int = 1000

    def __post_init__(self) -> None:
        check_branch("branch", self.branch)
        check_choice(self, lends=("best", "sum"))
        check_range(self, "pool_size", ge=1)

    @property
    def needs_vectors(self) -> bool:
        return self.branch.needs_vectors

    @property
    def asks(self) -> tuple[str, ...]:
        return asked(self.branch)

    @property
    def gives(self) -> Raw:
        return self.branch.gives

    def candidates(self, batch: Batch) -> pl.DataFrame:
        raw = self.gives
        own = self.branch.candidates(batch).with_columns(_own=pl.int_range(pl.len()).over("query_id"))
        place = batch.documents.select("document_id", *_SESSION, _said=pl.int_range(pl.len()))
        scores = pl.col(raw, "contained")
        lent = scores.max() if self.lends == "best" else pl.when(scores.count() > 0).then(scores.sum())
        sessions = (
            own.join(place, on="document_id", maintain_order="left")
            .group_by("query_id", "asked_at", *_SESSION, maintain_order=True)
            .agg(lent)
        )
        rows = (
            sessions.join(place, on=_SESSION, nulls_equal=True, maintain_order="left_right")
            .join(own.select("query_id", "document_id", "_own"), on=["query_id", "document_id"], how="left")
            .with_columns(_query=pl.col("query_id").rle_id())
            .sort(
                *("_query", raw, "contained", "_own", "_said"),
                descending=[False, True, True, False, False],
                nulls_last=True,
            )
            .with_columns(_rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("_query"))
            .filter(pl.col("_rank") <= self.pool_size)
        )
        if raw != "score":
            rows = rows.rename({"_rank": "dense_rank" if raw == "cosine" else "lexical_rank"})
        return rows.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert", extra_columns="ignore")
