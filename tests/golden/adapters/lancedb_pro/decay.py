"""memory-lancedb-pro's decay engine and tier manager onto ours."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Columns
from lcm.retrieval.decay import Weibull
from lcm.retrieval.ranking.stages.scores import DecayBoost
from lcm.retrieval.ranking.stages.scores import effective_half_life as lengthened
from lcm.retrieval.reinforcement import DecayTiers
from tests.golden.adapters.lancedb_pro import ranking
from tests.golden.components import component
from tests.golden.originals import row_metadata as metadata

KEYS = {f"{tier}_decay_floor": f"floor_{tier}" for tier in ("core", "working", "peripheral")}


def decay_score(case: dict[str, Any]) -> dict[str, Any]:
    decay = configured(case["config"])
    frame = memories([case["memory"]], case["now_ms"])
    columns = Columns(frame)
    return {
        "memory_id": frame["document_id"].item(),
        "recency": decay.recency(columns).item(),
        "frequency": decay.frequency(columns).item(),
        "intrinsic": decay.intrinsic(columns).item(),
        "composite": decay.strength(columns).item(),
    }


def decay_search_boost(case: dict[str, Any]) -> list[float]:
    return search_boost(case, configured(case["config"]))


def search_boost(case: dict[str, Any], decay: Weibull) -> list[float]:
    """The boosted scores of a case, in the order given."""
    frame = memories([row["memory"] for row in case["results"]], case["now_ms"])
    scores = np.array([float(row["score"]) for row in case["results"]], np.float64)
    return (decay.multiplier(Columns(frame)) * scores).tolist()


def decay_stale(case: dict[str, Any]) -> list[dict[str, Any]]:
    decay = configured(case["config"])
    frame = memories(case["memories"], case["now_ms"])
    columns = Columns(frame)
    found = frame.select(memory_id="document_id", composite=pl.Series(decay.strength(columns)))
    return found.filter(pl.Series(decay.is_stale(columns))).sort("composite", maintain_order=True).to_dicts()


def decay_boost(case: dict[str, Any]) -> list[dict[str, Any]]:
    return boosted(case, DecayBoost(configured({})))


def boosted(case: dict[str, Any], stage: DecayBoost) -> list[dict[str, Any]]:
    """The rows of a case as a boost leaves them."""
    lives = [life(row, case["now_ms"]) for row in case["results"]]
    columns = memories(lives, case["now_ms"]).drop("document_id", "asked_at")
    return ranking.scored(stage, case, **columns.to_dict())


def tier_evaluate(case: dict[str, Any]) -> dict[str, str] | None:
    frame = memories([case["memory"]], case["now_ms"]).with_columns(composite=pl.lit(float(case["composite"])))
    tiers = replace(maintenance_tiers(), **case["config"])
    moves = transitions(tiers, frame, frame["composite"], case["now_ms"])
    return moves[0] if moves else None


def tier_maintenance(case: dict[str, Any]) -> list[dict[str, str]]:
    frame = memories(case["memories"], case["now_ms"])
    is_dropped = frame["document_id"].is_in(case["drop_score_for"])
    strength = pl.Series(configured({}).strength(Columns(frame))).set(is_dropped, None)
    return transitions(maintenance_tiers(), frame, strength, case["now_ms"])


def effective_half_life(case: dict[str, Any]) -> float:
    memory = {"access_count": case["access_count"], "last_accessed_at_ms": case["last_accessed_at_ms"]}
    factor, multiplier = float(case["reinforcement_factor"]), float(case["max_half_life_multiplier"])
    columns = Columns(memories([memory], case["now_ms"]))
    return lengthened(columns, np.array([float(case["base_half_life_days"])]), factor, multiplier).item()


def configured(config: dict[str, float], override: str = "decay=weibull") -> Weibull:
    """The decay that an override chooses, with the plugin's keys."""
    decay: Weibull = component(override, "decay")
    return replace(decay, **{KEYS.get(key, key): value for key, value in config.items()})


def maintenance_tiers() -> DecayTiers:
    tiers: DecayTiers = component("reinforcement=recall", "reinforcement").tiers
    return tiers


def transitions(tiers: DecayTiers, frame: pl.DataFrame, strength: pl.Series, now_ms: float) -> list[dict[str, str]]:
    moves = tiers.transitions(frame, strength, datetime.fromtimestamp(now_ms / 1000, UTC))
    return moves.select("from_tier", "to_tier", memory_id="document_id").to_dicts()


def life(row: dict[str, Any], now_ms: float) -> dict[str, Any]:
    importance, timestamp = row["importance"], row["timestamp_ms"]
    return metadata.lifecycle(
        ranking.parsed(row, now_ms),
        importance=None if importance is None else float(importance),
        timestamp_ms=None if timestamp is None else float(timestamp),
        now_ms=now_ms,
    )


def memories(given: Sequence[dict[str, Any]], now_ms: float) -> pl.DataFrame:
    """Memories as rows of documents."""

    def column(key: str) -> list[Any]:
        return [memory.get(key) for memory in given]

    return pl.DataFrame(
        {
            "document_id": pl.Series(column("id"), dtype=pl.String),
            "importance": pl.Series([as_float(value) for value in column("importance")], dtype=pl.Float64),
            "confidence": pl.Series([as_float(value) for value in column("confidence")], dtype=pl.Float64),
            "decay_tier": pl.Series(column("tier"), dtype=pl.String),
            "access_count": pl.Series([as_count(value) for value in column("access_count")], dtype=pl.Float64),
            "created_at": ranking.instants(column("created_at_ms")),
            "last_accessed_at": ranking.instants(column("last_accessed_at_ms")),
            "temporal_type": pl.Series(column("temporal_type"), dtype=pl.String),
        }
    ).with_columns(asked_at=pl.lit(int(now_ms), pl.Int64).cast(ranking.INSTANT))


def as_float(value: Any) -> float | None:
    return None if value is None else float(value)


def as_count(value: Any) -> float | None:
    """Our column holds what can be counted: what cannot is missing."""
    return None if value is None or not math.isfinite(float(value)) else float(value)
