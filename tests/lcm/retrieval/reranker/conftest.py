"""Frames and batches by hand: what a reranker sees after fusion."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from lcm.errors import LcmError
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch

TEXTS = {
    "kettle": "the kettle is broken",
    "goats": "three goats near the river",
    "tea": "green tea, never coffee",
    "lamp": "a lamp",
}
QUERIES = {"q0": "what broke?", "q1": "animals"}
VECTORS = {"kettle": (1.0, 0.0), "goats": (0.0, 1.0), "tea": (0.6, 0.8), "lamp": (-1.0, 0.0)}
QUERY_VECTORS = {"q0": (1.0, 0.0), "q1": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def batch(
    queries: Mapping[str, str] = QUERIES,
    query_vectors: Mapping[str, Sequence[float]] = QUERY_VECTORS,
    vectors: Mapping[str, Sequence[float]] = VECTORS,
    texts: Mapping[str, str] = TEXTS,
    embedding_error: LcmError | None = None,
    calls: list[list[str]] | None = None,
) -> Batch:
    """`calls` collects what is asked of `document_vectors`."""

    def document_vectors(ids: Sequence[str]) -> Vectors:
        if calls is not None:
            calls.append(list(ids))
        return np.array([vectors[i] for i in ids], dtype=np.float64)

    return Batch(
        queries=pl.DataFrame({"query_id": list(queries), "text": list(queries.values())}),
        vectors=np.array([query_vectors.get(query, ()) for query in queries], dtype=np.float64),
        documents=pl.DataFrame({"document_id": list(texts), "text": list(texts.values())}),
        allowed=None,
        vector_index=None,
        text_index=None,
        document_vectors=document_vectors,
        embedding_error=embedding_error,
        incidents=Counter(),
    )


def frame(*rows: tuple[str, str, float | None, float | None]) -> pl.DataFrame:
    """Rows query_id, document_id, score, lexical_score."""
    columns = {"query_id": pl.String, "document_id": pl.String, "score": pl.Float64, "lexical_score": pl.Float64}
    asked_at = datetime(2026, 1, 1, tzinfo=UTC)
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(asked_at=pl.lit(asked_at))


TWO_QUERIES = frame(
    ("q0", "kettle", 0.8, 0.9),
    ("q0", "goats", 0.5, None),
    ("q0", "tea", 0.4, 0.65),
    ("q1", "tea", 0.7, None),
    ("q1", "goats", 0.6, None),
    ("q1", "lamp", 0.6, 0.7),
)


def scores(rows: pl.DataFrame, query_id: str = "q0") -> dict[str, float]:
    """Document to score, in the order of the rows."""
    chosen = rows.filter(pl.col("query_id") == query_id)
    return dict(zip(chosen["document_id"], chosen["score"], strict=True))
