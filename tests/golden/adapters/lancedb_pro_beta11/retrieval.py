"""memory-lancedb-pro 1.1.0-beta.11's retrieval onto our rankings: that of beta.10 under other choices."""

from functools import partial
from typing import Any

from lcm.retrieval.ranking.stages.decay_boost import DecayBoost
from tests.golden.adapters.lancedb_pro import pipeline
from tests.golden.adapters.lancedb_pro.decay import boosted, configured, search_boost

SYSTEM = "system=lancedb_pro_beta11"
decay = partial(configured, override=SYSTEM)
BETA11 = pipeline.Version(SYSTEM, "description", decay, pipeline.BETA10.is_of_category)


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
