"""A test collection as other tools know it: documents, queries, and judgements of which document answers which."""

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

CORPUS_SCHEMA: dict[str, pl.DataType] = {"document_id": pl.String(), "title": pl.String(), "text": pl.String()}
QUERIES_SCHEMA: dict[str, pl.DataType] = {"query_id": pl.String(), "text": pl.String()}
JUDGED_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "document_id": pl.String(),
    "relevance": pl.Int64(),
}
CANDIDATES_SCHEMA: dict[str, pl.DataType] = {"query_id": pl.String(), "document_ids": pl.List(pl.String())}
INSTRUCTIONS_SCHEMA: dict[str, pl.DataType] = {"query_id": pl.String(), "instruction": pl.String()}


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, queries and judgements, as they stand in the files: ids are those of the files."""

    corpus: pl.DataFrame
    """Rows of `CORPUS_SCHEMA`; a document without a title has the empty one."""
    queries: pl.DataFrame
    """Rows of `QUERIES_SCHEMA`."""
    qrels: pl.DataFrame
    """Rows of `JUDGED_SCHEMA`; relevance 0 was judged and found not to be relevant."""
    candidates: pl.DataFrame | None = None
    """Rows of `CANDIDATES_SCHEMA`: what a query may be answered with; None = the whole corpus."""
    instructions: pl.DataFrame | None = None
    """Rows of `INSTRUCTIONS_SCHEMA`: what an embedder is told beside a query."""
    files: tuple[Path, ...] = field(default=(), compare=False)
    """From which it was read."""
