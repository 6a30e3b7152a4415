"""What the answers to the queries of a run are worth: of each arm, and by category."""

from collections.abc import Iterator, Mapping
from typing import Any

from eval.measures.names import ANSWER_MEASURES, SYSTEM_ARM

_COLUMNS = (*ANSWER_MEASURES[:6], "abstention_precision", *ANSWER_MEASURES[6:])
Rows = Mapping[str, Mapping[str, Mapping[str, float | None]]]
"""Arm or category -> measure -> value, n, low, high."""


def answer_tables(summary: Mapping[str, Any]) -> Iterator[tuple[str, str, Rows, list[str]]]:
    """Heading, title, rows and columns of each table; none where nothing was answered."""
    unpaired = summary.get("answers", {})
    arms = {SYSTEM_ARM: summary["measures"], **summary["arms"]}
    of_arms = {arm: {**measures, **unpaired.get(arm, {})} for arm, measures in arms.items()}
    for heading, title, rows in (
        ("answers", "mean over the queries of each kind", of_arms),
        ("category", "the system's answers, by category", summary["categories"]),
    ):
        told = {row: {name: measures[name] for name in _COLUMNS if name in measures} for row, measures in rows.items()}
        columns = [name for name in _COLUMNS if any(name in measures for measures in told.values())]
        if columns:
            yield heading, title, {row: measures for row, measures in told.items() if measures}, columns
