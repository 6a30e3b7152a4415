"""Seeded candidates as fusion leaves them: a frame with its batch for stages, arrays for plain numpy."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from eval.benchmark import corpus
from lcm.checks import check_range
from lcm.javascript import utf16_length
from lcm.memory.query_batches import asked_frame
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.source.candidates import CANDIDATE_SCHEMA, describe
from lcm.retrieval.text_index.bm25s import Bm25s
from lcm.retrieval.vector_index.exact import Exact
from lcm.store.documents import DOCUMENT_SCHEMA

DAY_MS = 86_400_000

_ASKED_AT = corpus.START + timedelta(days=365)
_ASKED_MS = int(_ASKED_AT.timestamp() * 1000)
_LEAN = np.float32(0.7)
_COPIES, _COPY_NOISE = 0.6, 0.3  # near duplicates have a cosine of about 0.96
_NOISE_TEXTS = (
    "I don't recall that.",
    "Do you remember what we said about it?",
    "Good morning!",
    "query -> none",
    "Sorry, I wasn't able to find anything.",
    "ok",
)
_NOISE, _EXPIRED, _EXPIRING, _DYNAMIC, _FUTURE, _UNDATED = 0.05, 0.03, 0.02, 0.2, 0.01, 0.01
_USED, _MEAN_ACCESSES, _MEAN_AGE_DAYS = 0.5, 4, 30
_DECAY_TIERS = ("core", "working", "peripheral")

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of a candidate frame as arrays in its order: `candidates` rows a query.

    Instants are milliseconds.
    """

    queries: int
    candidates: int
    asked_at: Numbers
    """Of each query; so are `query_vectors`. Everything else is of each row."""
    query_vectors: Vectors
    document_ids: list[str]
    vector_of: dict[str, Vectors]
    """By document id, as is `text_of`: both sides are given ids, and find the rest."""
    text_of: dict[str, str]
    score: Numbers
    created_at: Numbers
    last_accessed_at: Numbers
    """NaN where never."""
    valid_until: Numbers
    """Infinite where for good."""
    access_count: Numbers
    importance: Numbers
    confidence: Numbers
    decay_tier: npt.NDArray[np.str_]
    is_dynamic: npt.NDArray[np.bool_]
    length_utf16: Numbers

    def vectors(self, places: npt.NDArray[np.int64]) -> Vectors:
        """Of the documents of these rows, in order."""
        if not len(places):
            return np.empty((0, self.query_vectors.shape[1]), np.float32)
        return np.stack([self.vector_of[self.document_ids[place]] for place in places])


@dataclass(frozen=True, slots=True)
class FusedBatch:
    """One batch, its candidate frame, best first, and the same as arrays."""

    batch: Batch
    frame: pl.DataFrame
    rows: Rows

    def parts(self, queries: int) -> list[tuple[pl.DataFrame, Batch]]:
        """Frames and batches of so many queries each; their documents stay those of all."""
        size = queries * self.rows.candidates
        return [
            (
                self.frame[first * self.rows.candidates :][:size],
                replace(
                    self.batch,
                    queries=self.batch.queries[first : first + queries],
                    vectors=self.batch.vectors[first : first + queries],
                ),
            )
            for first in range(0, self.rows.queries, queries)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedSizes:
    """How many queries and candidates a comparison ranks."""

    documents: int
    queries: int
    candidates: int
    """Of each query."""
    dim: int

    def __post_init__(self) -> None:
        check_range(self, "documents", "queries", "candidates", "dim", ge=1)
        if self.candidates > self.documents // 2 * 2:
            most = self.documents // 2 * 2
            raise ValueError(f"candidates must be <= documents, whole pairs of them ({most}), got {self.candidates}")

    @property
    def facts(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in ("documents", "queries", "candidates", "dim")}

    def fused_batch(self, seed: int) -> FusedBatch:
        return fused(self.documents, self.queries, self.candidates, self.dim, seed)


def fused(documents: int, queries: int, candidates: int, dim: int, seed: int) -> FusedBatch:
    """So many queries of a year's workspace, each with so many of its documents.

    Documents come in pairs, of which six in ten say nearly the same; a query gets whole pairs. 5 % are noise, 3 % have
    expired, a fifth is dynamic, half were used, and a few lie in the future or have no date.
    """
    query_vectors = _leaning(corpus.unit_vectors(queries, dim, seed + 1))
    ids = [f"d{i}" for i in range(documents)]
    index = Exact().build(dim, incidents=Counter())
    index.add(ids, _vectors(documents, dim, seed))
    known = _documents(ids, seed)
    asked = asked_frame([replace(query, asked_at=_ASKED_AT) for query in corpus.queries(queries, seed)])
    batch = Batch(
        queries=asked,
        vectors=query_vectors,
        documents=known,
        allowed=None,
        vector_index=index,
        text_index=Bm25s().build(),
        document_vectors=index.vectors_of,
    )
    frame = describe(_candidates(batch, candidates, seed), batch)
    return FusedBatch(batch, frame, _rows(frame, batch, candidates))


def _vectors(number: int, dim: int, seed: int) -> Vectors:
    """Unit vectors that share a direction; every second one may be a near duplicate of the one before."""
    rng = np.random.default_rng([seed, 4])
    rows = _leaning(corpus.unit_vectors(number, dim, seed))
    noise = rng.standard_normal((number // 2, dim), dtype=np.float32)
    noise *= _COPY_NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    is_copy = rng.random((number // 2, 1)) < _COPIES
    rows[1::2] = np.where(is_copy, rows[: number // 2 * 2 : 2] + noise, rows[1::2])
    return _unit(rows)


def _leaning(vectors: Vectors) -> Vectors:
    """Any two have a cosine of about a third, as those of candidates have."""
    return _unit(vectors + _LEAN / np.float32(np.sqrt(vectors.shape[1])))


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _documents(ids: list[str], seed: int) -> pl.DataFrame:
    number = len(ids)
    rng = np.random.default_rng([seed, 5])
    is_noise = rng.random(number) < _NOISE
    noise = rng.integers(len(_NOISE_TEXTS), size=number).tolist()
    texts = [
        _NOISE_TEXTS[which] if noisy else text
        for text, noisy, which in zip(corpus.texts(number, seed), is_noise.tolist(), noise, strict=True)
    ]
    ages_days = rng.exponential(_MEAN_AGE_DAYS, number)
    ages_days[rng.random(number) < _FUTURE] *= -0.1
    created_at = (_ASKED_MS - ages_days * DAY_MS).astype(np.int64)
    created_at[rng.random(number) < _UNDATED] = 0
    is_used = rng.random(number) < _USED
    accessed_at = (_ASKED_MS - rng.random(number) * np.abs(ages_days) * DAY_MS).astype(np.int64)
    ends = rng.random(number)
    has_expired, expires = ends < _EXPIRED, ends < _EXPIRED + _EXPIRING
    valid_until = _ASKED_MS + np.where(has_expired, -1, 1) * rng.integers(1, 30, number) * DAY_MS
    given: dict[str, Any] = {
        "document_id": ids,
        "text": texts,
        "kind": "message",
        "category": "other",
        "scope": "global",
        "conversation_id": "talk",
        "session_id": [f"talk:session {i // 40}" for i in range(number)],
        "created_at": created_at,
        "valid_from": created_at,
        "last_accessed_at": pl.select(pl.when(pl.Series(is_used)).then(pl.Series(accessed_at))).to_series(),
        "valid_until": pl.select(pl.when(pl.Series(expires)).then(pl.Series(valid_until))).to_series(),
        "access_count": np.where(is_used, rng.geometric(1 / _MEAN_ACCESSES, number), 0),
        "importance": rng.uniform(0.4, 1, number),
        "confidence": rng.uniform(0.5, 1, number),
        "decay_tier": rng.choice(_DECAY_TIERS, number, p=[0.1, 0.7, 0.2]).tolist(),
        "temporal_type": np.where(rng.random(number) < _DYNAMIC, "dynamic", "static").tolist(),
        "tokens": [len(text) // 4 for text in texts],
        "length_utf16": [utf16_length(text) for text in texts],
        "seq": np.arange(1, number + 1),
    }
    columns = [_column(given.get(name), dtype, number).alias(name) for name, dtype in DOCUMENT_SCHEMA.items()]
    return pl.DataFrame(columns)


def _column(values: Any, dtype: pl.DataType, number: int) -> pl.Series:
    """A value of its own for each row, one for all, or nulls."""
    series = pl.Series([values] * number if values is None or isinstance(values, str) else values)
    return series.cast(dtype)


def _candidates(batch: Batch, candidates: int, seed: int) -> pl.DataFrame:
    """Rows with every score that a source, its mappings and fusion make, best first."""
    rng = np.random.default_rng([seed, 6])
    pairs, pairs_a_query = len(batch.documents) // 2, (candidates + 1) // 2
    drawn = np.array([rng.choice(pairs, pairs_a_query, replace=False) for _ in range(len(batch.queries))])
    places = (2 * drawn[:, :, np.newaxis] + np.arange(2)).reshape(len(drawn), -1)[:, :candidates].ravel()
    number = len(places)
    ranks = np.tile(np.arange(1, candidates + 1), len(batch.queries))
    asked = batch.queries[np.repeat(np.arange(len(batch.queries)), candidates)]
    bm25 = rng.gamma(2.0, 4.0, number)
    dense_score = rng.uniform(0.4, 0.8, number)
    frame = pl.DataFrame(
        {
            "query_id": asked["query_id"],
            "asked_at": asked["asked_at"],
            "document_id": batch.documents["document_id"][places],
            "cosine": 2 - 1 / dense_score,
            "bm25": bm25,
            "contained": pl.Series([None] * number, dtype=pl.Float64),
            "dense_rank": ranks,
            "lexical_rank": ranks,
            "score": rng.uniform(0.25, 1, number),
            "dense_score": dense_score,
            "lexical_score": 1 / (1 + np.exp(-bm25 / 5)),
        },
        schema_overrides=CANDIDATE_SCHEMA,
    )
    return best_first(frame)


def _rows(frame: pl.DataFrame, batch: Batch, candidates: int) -> Rows:
    def numbers(column: str, missing: float = np.nan) -> Numbers:
        return (
            frame[column]
            .cast(pl.Int64 if frame[column].dtype.is_temporal() else pl.Float64)
            .cast(pl.Float64)
            .fill_null(missing)
            .to_numpy()
        )

    ids = batch.documents["document_id"].to_list()
    return Rows(
        queries=len(batch.queries),
        candidates=candidates,
        asked_at=batch.queries["asked_at"].cast(pl.Int64).cast(pl.Float64).to_numpy(),
        query_vectors=batch.vectors,
        document_ids=frame["document_id"].to_list(),
        vector_of=dict(zip(ids, batch.document_vectors(ids), strict=True)),
        text_of=dict(batch.documents.select("document_id", "text").iter_rows()),
        score=numbers("score"),
        created_at=numbers("created_at"),
        last_accessed_at=numbers("last_accessed_at"),
        valid_until=numbers("valid_until", np.inf),
        access_count=numbers("access_count"),
        importance=numbers("importance"),
        confidence=numbers("confidence"),
        decay_tier=np.array(frame["decay_tier"].to_list()),
        is_dynamic=(frame["temporal_type"] == "dynamic").to_numpy(),
        length_utf16=numbers("length_utf16"),
    )
