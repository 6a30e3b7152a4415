"""memory-lancedb-pro's stages onto ours."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from lcm.javascript import clamp_int, utf16_length
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Stage
from lcm.retrieval.ranking.stages.scores import (
    ImportanceWeight,
    LengthNormalization,
    RecencyBoost,
    TimeDecay,
    clamp01,
    clamp01_with_floor,
)
from lcm.retrieval.ranking.stages.selection import Diversity
from lcm.writing.noise import is_noise
from tests.golden.components import documents_batch
from tests.golden.originals import row_metadata as metadata

INSTANT = pl.Datetime("ms", "UTC")
LAST_MS = 8_640_000_000_000_000
"""The last instant that JavaScript has."""
KEYS = {
    "recency_half_life_days": "half_life_days",
    "recency_weight": "weight",
    "length_norm_anchor": "anchor",
    "time_decay_half_life_days": "half_life_days",
    "reinforcement_factor": "reinforcement_factor",
    "max_half_life_multiplier": "max_half_life_multiplier",
}


def clamps(case: dict[str, Any]) -> dict[str, float]:
    value, fallback = np.array(float(case["value"])), np.array(float(case["fallback"]))
    return {
        "clamp01": clamp01(value, fallback).item(),
        "clamp01_with_floor": clamp01_with_floor(value, fallback).item(),
        "clamp_int": clamp_int(float(case["value"]), case["min"], case["max"]),
    }


def recency_boost(case: dict[str, Any]) -> list[dict[str, Any]] | str:
    try:
        stage = configured(RecencyBoost(), case["config"])
    except ValueError as error:
        return str(error)
    return scored(stage, case, created_at=created(case))


def importance_weight(case: dict[str, Any]) -> list[dict[str, Any]]:
    given = [None if row["importance"] is None else float(row["importance"]) for row in case["results"]]
    return scored(ImportanceWeight(), case, importance=pl.Series(given, dtype=pl.Float64))


def length_normalization(case: dict[str, Any]) -> list[dict[str, Any]]:
    lengths = [utf16_length(row["text"]) for row in case["results"]]
    return scored(
        configured(LengthNormalization(), case["config"]), case, length_utf16=pl.Series(lengths, dtype=pl.Int64)
    )


def time_decay(case: dict[str, Any]) -> list[dict[str, Any]]:
    uses = [metadata.access(row.get("metadata")) for row in case["results"]]
    temporal_types = [parsed(row, case["now_ms"]).get("memory_temporal_type") for row in case["results"]]
    return scored(
        configured(TimeDecay(), case["config"]),
        case,
        created_at=created(case),
        access_count=pl.Series([count for count, _ in uses], dtype=pl.Int64),
        last_accessed_at=instants([last for _, last in uses]),
        temporal_type=pl.Series(temporal_types, dtype=pl.String),
    )


def mmr_diversity(case: dict[str, Any]) -> list[str]:
    results = case["results"]
    vectors = unit_vectors([row["vector"] for row in results])
    batch = replace(documents_batch([]), document_vectors=lambda rows: vectors[[int(row) for row in rows]])
    frame = rows(len(results), case.get("now_ms", 0)).with_columns(score=pl.lit(1.0))
    walked = Diversity(case["similarity_threshold"])(frame, batch)
    return [results[int(row)]["id"] for row in walked["document_id"]]


def noise_filter(case: dict[str, Any]) -> bool:
    return is_noise(case["text"], **{key.removeprefix("filter_"): value for key, value in case["options"].items()})


def configured(stage: Any, config: dict[str, Any]) -> Any:
    """The stage with the plugin's keys."""
    return replace(stage, **{KEYS[key]: float(value) for key, value in config.items()})


def scored(stage: Stage, case: dict[str, Any], **columns: pl.Series) -> list[dict[str, Any]]:
    results = case["results"]
    scores = pl.Series([float(row["score"]) for row in results], dtype=pl.Float64)
    frame = rows(len(results), case["now_ms"]).with_columns(score=scores, **columns)
    left = stage(frame, documents_batch([])).select("document_id", "score")
    return [
        {"id": results[int(row)]["id"], "score": score} for row, score in left.select("document_id", "score").rows()
    ]


def rows(count: int, now_ms: float) -> pl.DataFrame:
    """One query's candidates, named by their position: the vectors repeat ids."""
    return pl.DataFrame({"document_id": pl.Series([str(row) for row in range(count)], dtype=pl.String)}).with_columns(
        query_id=pl.lit("q"), asked_at=pl.lit(int(now_ms), pl.Int64).cast(INSTANT)
    )


def created(case: dict[str, Any]) -> pl.Series:
    return instants([row["timestamp_ms"] for row in case["results"]])


def instants(values_ms: Sequence[Any]) -> pl.Series:
    known = [None if value is None or not math.isfinite(float(value)) else int(value) for value in values_ms]
    bounded = [None if value is None else min(max(value, -LAST_MS), LAST_MS) for value in known]
    return pl.Series(bounded, dtype=pl.Int64).cast(INSTANT)


def parsed(row: dict[str, Any], now_ms: float) -> dict[str, Any]:
    timestamp = row.get("timestamp_ms")
    return metadata.parse(
        row.get("metadata"),
        text=row.get("text", "some stored memory text"),
        category=row.get("category", "fact"),
        timestamp_ms=None if timestamp is None else float(timestamp),
        now_ms=now_ms,
    )


def unit_vectors(vectors: Sequence[Sequence[float]]) -> Vectors:
    """As the indexes keep them; a row without a vector, or of another dimension than the first, is of zeros."""
    dim = next((len(vector) for vector in vectors if vector), 0)
    stacked = np.array([vector if len(vector) == dim else [0.0] * dim for vector in vectors]).reshape(len(vectors), dim)
    norms = np.linalg.norm(stacked, axis=1, keepdims=True)
    return stacked / np.where(norms > 0, norms, 1)
