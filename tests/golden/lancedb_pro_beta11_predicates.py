"""The predicates and assertions on memory-lancedb-pro 1.1.0-beta.11 that `deviations.yaml` names."""

from typing import Any

import pytest

from tests.golden.adapters.lancedb_pro_beta11 import retrieval


def relates_by_a_name_that_is_not_stored(case: dict[str, Any]) -> bool:
    """Neighbours are wanted by a category that some row has under another name."""
    return case["config"]["neighbor_enrichment"]["enabled"] and bool(_wanted_under_another_name(case))


def relates_what_is_wanted_under_any_name(case: dict[str, Any], found: dict[str, Any], expected: Any) -> None:
    assert _without_neighbours(found) == pytest.approx(_without_neighbours(expected))
    shown = [one["id"] for row in found["results"] for one in row.get("neighbors", [])]
    named = [one["id"] for row in expected["results"] for one in row.get("neighbors", [])]
    assert set(shown) - set(named) <= _wanted_under_another_name(case)


def _wanted_under_another_name(case: dict[str, Any]) -> set[str]:
    wanted = case["category"]
    rows = (row for rows in case["neighbor_rows"].values() for row in rows)
    return {row["id"] for row in rows if wanted and wanted != row["category"] and retrieval.is_of_category(row, wanted)}


def _without_neighbours(answer: dict[str, Any]) -> dict[str, float]:
    return {row["id"]: row["score"] for row in answer["results"]}
