"""The predicates and assertions that `deviations.yaml` names."""

import copy
import math
from typing import Any

from tests.golden.adapters.lancedb_pro import decay


def has_a_rating_that_is_no_number(case: dict[str, Any]) -> bool:
    return any(math.isnan(float(memory[key])) for memory in _memories(case) for key in ("importance", "confidence"))


def equals_the_score_of_default_ratings(case: dict[str, Any], found: dict[str, Any]) -> None:
    assert found == decay.decay_score(_with_default_ratings(case))


def equals_the_boost_of_default_ratings(case: dict[str, Any], found: list[float]) -> None:
    assert found == decay.decay_search_boost(_with_default_ratings(case))


def has_an_access_count_that_is_no_number(case: dict[str, Any]) -> bool:
    return math.isnan(float(case["access_count"]))


def is_the_base_half_life(case: dict[str, Any], found: float) -> None:
    assert found == case["base_half_life_days"]


def mixes_dimensions(case: dict[str, Any]) -> bool:
    return len({len(row["vector"]) for row in case["results"] if row["vector"]}) > 1


def keeps_every_result(case: dict[str, Any], found: list[str]) -> None:
    assert sorted(found) == sorted(row["id"] for row in case["results"])


def _memories(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [case["memory"]] if "memory" in case else [row["memory"] for row in case["results"]]


def _with_default_ratings(case: dict[str, Any]) -> dict[str, Any]:
    """The case with 0.7 for every rating that is no number."""
    rated = copy.deepcopy(case)
    for memory in _memories(rated):
        memory |= {key: 0.7 for key in ("importance", "confidence") if math.isnan(float(memory[key]))}
    return rated
