"""memory-lancedb-pro 1.1.0-beta.11's retrieval onto our rankings: that of beta.10 under other choices."""

from functools import partial
from typing import Any

from lcm.errors import LcmError
from lcm.retrieval.ranking.stages.scores import DecayBoost
from tests.golden.adapters.lancedb_pro import pipeline
from tests.golden.adapters.lancedb_pro.decay import boosted, configured, search_boost
from tests.golden.originals.categories import columns_of, row_category, row_is_of_category

SYSTEM = "system=lancedb_pro_beta11"
FAILURE_STAGES = {True: "hybrid.parallelSearch", False: "vector.vectorSearch"}
"""What the plugin calls the step that fails, by whether it has a full-text index."""
decay = partial(configured, override=SYSTEM)


def is_of_category(row: dict[str, Any], wanted: str) -> bool:
    return row_is_of_category(row.get("category", "fact"), row.get("metadata"), wanted)


BETA11 = pipeline.Version(SYSTEM, "description", decay, is_of_category)


def decay_search_boost(case: dict[str, Any]) -> list[float]:
    return search_boost(case, decay(case["config"]))


def decay_boost(case: dict[str, Any]) -> list[dict[str, Any]]:
    return boosted(case, DecayBoost(decay({})))


def pipeline_hybrid(case: dict[str, Any]) -> dict[str, Any]:
    return pipeline.answered(case, BETA11)


def pipeline_vector(case: dict[str, Any]) -> dict[str, Any]:
    return pipeline.answered(case, BETA11)


def pipeline_tag(case: dict[str, Any]) -> dict[str, Any]:
    return pipeline.answered(case, BETA11)


def corpus_exempt(case: dict[str, Any]) -> dict[str, Any]:
    return pipeline.answered(case, BETA11)


def pipeline_category(case: dict[str, Any]) -> dict[str, Any]:
    return pipeline.answered(case, BETA11)


def category_filter(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "matches": row_is_of_category(case["entry_category"], case["metadata"], case["requested"]),
        "candidates": columns_of(case["requested"]),
        "tool": row_category(case["requested"])._asdict(),
    }


def branch_failure(case: dict[str, Any]) -> dict[str, Any]:
    try:
        return pipeline.answered(case, BETA11)
    except LcmError:
        return {"raises": True, "failure_stage": FAILURE_STAGES[case["has_fts_support"]]}
