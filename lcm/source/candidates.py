"""The candidate frame: how the answers of the indexes become rows."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from lcm.protocols import Batch

CANDIDATE_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "asked_at": pl.Datetime("ms", "UTC"),
    "document_id": pl.String(),
    "cosine": pl.Float64(),
    "bm25": pl.Float64(),
    "contained": pl.Float64(),
    "dense_rank": pl.Int64(),
    "lexical_rank": pl.Int64(),
    "score": pl.Float64(),
}
"""What every source returns: raw scores, 1-based ranks, null where that branch did not return the row. `contained` is
the score, in (0, 1), of a document that the lexical branch found by substring because no word was found."""

DESCRIBED_BY = (
    "kind", "category", "scope", "conversation_id", "session_id", "seq", "created_at", "last_accessed_at",
    "valid_until", "access_count", "importance", "confidence", "decay_tier", "temporal_type", "tokens", "length_utf16",
)  # fmt: skip
"""What stages see of each document besides its raw scores; texts and vectors are asked of the batch."""

_KEYS = ["query", "document_id"]


def branch(answers: Sequence[tuple[Sequence[str], Sequence[float]]], score: str, rank: str) -> pl.DataFrame:
    """Lay out the answers of one index, an (ids, scores) pair a query, as rows: query, document_id, score, rank.

    `query` is the position of the query in its batch. An id named twice keeps its first place and takes its last
    score and rank.
    """
    counts = [len(ids) for ids, _ in answers]
    frame = pl.DataFrame(
        {
            "query": np.repeat(np.arange(len(counts), dtype=np.uint32), counts),
            "document_id": pl.Series([i for ids, _ in answers for i in ids], dtype=pl.String),
            score: pl.Series([s for _, scores in answers for s in scores], dtype=pl.Float64),
            rank: pl.Series([r for n in counts for r in range(1, n + 1)], dtype=pl.Int64),
        }
    )
    if any(len(set(ids)) < len(ids) for ids, _ in answers):
        frame = frame.group_by(_KEYS, maintain_order=True).agg(pl.col(score).last(), pl.col(rank).last())
    return frame


def merge(dense: pl.DataFrame, lexical: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Join two branches into candidate rows, the queries in the order of the batch.

    Within a query: dense rows in their order, then those that only the lexical branch found, in theirs.
    """
    rows = dense.join(lexical, on=_KEYS, how="full", coalesce=True, maintain_order="left_right")
    if "contained" not in rows.columns:
        rows = rows.with_columns(contained=pl.lit(None, pl.Float64))
    if len(batch.queries) > 1:
        rows = rows.sort("query", maintain_order=True)
    asked = batch.queries.select("query_id", "asked_at")[rows["query"]]
    return rows.select(
        asked["query_id"],
        asked["asked_at"],
        "document_id",
        "cosine",
        "bm25",
        "contained",
        "dense_rank",
        "lexical_rank",
        score=pl.lit(None, pl.Float64),
    )


def describe(candidates: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Put the documents' columns beside their candidate rows; a row whose document the store lacks is dropped."""
    known = documents.select("document_id", *DESCRIBED_BY)
    return candidates.join(known, on="document_id", how="inner", maintain_order="left")
