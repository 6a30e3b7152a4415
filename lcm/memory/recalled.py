"""Answers of a ranking as an assembly takes them."""

import polars as pl

from lcm.records.query import Recalled

_COLUMNS = (
    "query_id", "document_id", "text", "kind", "source_message_ids", "created_at", "score", "cosine", "role",
    "scope_class", "confidence", "index_tier", "is_recovered",
)  # fmt: skip
_SPOKEN = ("message", "guidance")
"""Kinds of documents that somebody said."""


def recalled_by_query(ranked: pl.DataFrame, documents: pl.DataFrame) -> dict[str, tuple[Recalled, ...]]:
    """What `Memory.rank` answered, by query id, best first; `documents` are those of the workspace."""
    rows = ranked.join(documents, on="document_id", how="left", maintain_order="left").select(_COLUMNS)
    found: dict[str, list[Recalled]] = {}
    for query_id, document_id, text, kind, sources, created_at, score, cosine, role, *rest in rows.iter_rows():
        said_by = role or "" if kind in _SPOKEN else ""
        one = Recalled(document_id, text, kind, tuple(sources), created_at, score or 0.0, cosine or 0.0, said_by, *rest)
        found.setdefault(query_id, []).append(one)
    return {query_id: tuple(documents) for query_id, documents in found.items()}
