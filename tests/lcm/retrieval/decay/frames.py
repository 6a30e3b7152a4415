"""Candidates as stages see them, every column at its default where a test names none."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.source.indexes import SCOPE_CLASS
from tests.golden.components import documents_batch

NOW = datetime(2026, 3, 1, tzinfo=UTC)
INSTANT = pl.Datetime("ms", "UTC")
DEFAULTS = {
    "query_id": (pl.String(), "q"),
    "asked_at": (INSTANT, NOW),
    "document_id": (pl.String(), None),
    "score": (pl.Float64(), 0.5),
    "kind": (pl.String(), "message"),
    "created_at": (INSTANT, NOW),
    "last_accessed_at": (INSTANT, None),
    "valid_until": (INSTANT, None),
    "access_count": (pl.Int64(), 0),
    "importance": (pl.Float64(), 0.7),
    "confidence": (pl.Float64(), 0.7),
    "decay_tier": (pl.String(), "working"),
    "temporal_type": (pl.String(), "static"),
    "length_utf16": (pl.Int64(), 100),
    "scope_class": (SCOPE_CLASS, "durable"),
    "authority": (pl.Float64(), 0.0),
    "decay_rate": (pl.Float64(), 0.0),
    "cosine": (pl.Float64(), 0.5),
}


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def rows(**columns: list[object]) -> pl.DataFrame:
    """Documents d0, d1, ... of one query unless the columns say otherwise."""
    count = len(next(iter(columns.values())))
    return pl.DataFrame(
        {
            name: pl.Series(
                columns.get(name, [f"d{i}" for i in range(count)] if name == "document_id" else [default] * count),
                dtype=dtype,
            )
            for name, (dtype, default) in DEFAULTS.items()
        }
    )


def scored(stage: Callable[[pl.DataFrame, Batch], pl.DataFrame], **columns: list[object]) -> list[float]:
    """The scores that a stage leaves, in the order of the documents' names."""
    return stage(rows(**columns), documents_batch([])).sort("document_id")["score"].to_list()
