"""The numbers of a run as tables, in the form in which MLflow's own viewer shows them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval.measures.names import SYSTEM_ARM

FOLDER = "tables"
"""Of the tables among the artifacts of a run."""
TAG = "mlflow.loggedArtifacts"
"""Names the tables to the viewer, as `MlflowClient.log_table` does, which would read each back after it wrote it."""
_BOUNDS = ("value", "low", "high", "n")


def tables(summary: Mapping[str, Any]) -> dict[str, str]:
    """Name of a file -> its text: `arms.json` and `categories.json`, a column a measure, and `intervals.json`, every
    mean with its interval. Those without rows are left out."""
    arms = {SYSTEM_ARM: summary.get("measures", {}), **summary.get("arms", {})}
    categories = summary.get("categories", {})
    found = {
        "arms": _wide("arm", arms),
        "categories": _wide("category", categories),
        "intervals": (
            ("arm", "category", "measure", *_BOUNDS),
            [*_long(arms, lambda arm: (arm, "all")), *_long(categories, lambda category: (SYSTEM_ARM, category))],
        ),
    }
    return {
        f"{name}.json": json.dumps({"columns": columns, "data": rows}, ensure_ascii=False)
        for name, (columns, rows) in found.items()
        if rows
    }


def tag(names: Sequence[str]) -> str:
    """The value of `TAG` for the files of these names."""
    return json.dumps([{"path": f"{FOLDER}/{name}", "type": "table"} for name in names])


def _wide(heading: str, groups: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ...], list[list[Any]]]:
    names = list(dict.fromkeys(name for measures in groups.values() for name in measures))
    told = {group: measures for group, measures in groups.items() if measures}
    rows = [[group, *(measures.get(name, {}).get("value") for name in names)] for group, measures in told.items()]
    return (heading, *names), rows


def _long(groups: Mapping[str, Mapping[str, Any]], place: Any) -> Iterator[list[Any]]:
    for group, measures in groups.items():
        for name, entry in measures.items():
            yield [*place(group), name, *(entry[bound] for bound in _BOUNDS)]
