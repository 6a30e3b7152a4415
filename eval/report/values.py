"""Numbers as the tables of a page show them."""

from collections.abc import Mapping
from typing import Any

from eval.measures.means import written
from eval.report.parts import Cell

Measures = Mapping[str, Mapping[str, Any]]
"""Measure -> value, n, low, high, as in a summary."""


def value_cell(entry: Mapping[str, Any] | None, is_cost: bool, tone: str = "") -> Cell:
    """A mean with its interval."""
    if entry is None or entry["value"] is None:
        return Cell("–", "quiet")
    bounds = (entry["low"], entry["high"])
    note = "" if None in bounds else f"{written(bounds[0], is_cost)} – {written(bounds[1], is_cost)}"
    return Cell(written(entry["value"], is_cost), tone, note)  # type: ignore[arg-type]


def plain_number(value: Any) -> str:
    """A number of any size, or what is none, as it is read."""
    return (
        f"{value:,.3g}"
        if isinstance(value, float) and value != int(value)
        else f"{value:,}"
        if isinstance(value, (int, float))
        else str(value)
    )
