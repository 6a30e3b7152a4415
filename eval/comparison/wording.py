"""Numbers and words that every table of a comparison uses."""

from collections.abc import Collection, Mapping
from typing import Any

from eval.comparison.changed_query import ChangedQuery


def number(value: float | None, is_cost: bool) -> str:
    """Of a cost above 1 to one place, else to three; `-` where there is none."""
    if value is None:
        return "-"
    return f"{value:,.1f}" if is_cost and (value == 0 or abs(value) >= 1) else f"{value:.3f}"


def signed(value: float, is_cost: bool) -> str:
    return f"+{number(value, is_cost)}" if value > 0 else number(value, is_cost)


def interval(row: Mapping[str, Any]) -> str:
    """Of a difference."""
    if row["low"] is None:
        return "-"
    return f"[{signed(row['low'], row['lower_is_better'])}, {signed(row['high'], row['lower_is_better'])}]"


def probability(value: float | None) -> str:
    if value is None:
        return "-"
    return "< .001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def changes(query: ChangedQuery, costs: Collection[str]) -> str:
    """`recall@10 1.000 -> 0.500, ...` of what changed for a query."""
    return ", ".join(
        f"{name} {number(before, name in costs)} -> {number(after, name in costs)}"
        for name, (before, after) in query.values.items()
    )
