"""Measures of conversations in the form of measures of queries: what `survival` and `resume` tell of the system.

A run that asks no question is compared by them, conversation by conversation.
"""

from collections.abc import Mapping
from typing import Any

from eval.measures.means import Entry
from eval.measures.measure import Direction
from eval.measures.names import SYSTEM_ARM
from eval.shape import sections

_COSTS = (
    *("missing", "mutated", "stale", "lost", "steps", "rounds"),
    *("recall_tokens", "task_tokens", "context_tokens", "filler_tokens"),
)
_COUNTS = ("facts", "probes", "summaries", "recalled")
"""Of these neither more nor less is better."""
_BY_PRODUCTS = ("recoverable", *_COUNTS)
"""More of what is recoverable is less of what is retained, or of what is missing."""


def conversation_means(summary: Mapping[str, Any]) -> dict[str, Entry]:
    """`survival.retained@8000` -> value, n, low, high: of the system, all budgets of one measure after another."""
    found: dict[str, Entry] = {}
    for name, section in sections(summary).items():
        arms = {arm: told for arm, told in section.items() if arm.startswith(f"{SYSTEM_ARM}@")}
        for measure in dict.fromkeys(measure for told in arms.values() for measure in told):
            for arm, told in arms.items():
                if measure not in _COUNTS and measure in told:
                    found[f"{name}.{measure}@{arm.partition('@')[2]}"] = told[measure]
    return found


def is_by_product(measure: str) -> bool:
    """Whether neither more nor less of one of `conversation_means` is better."""
    return measure.partition(".")[2].partition("@")[0] in _BY_PRODUCTS


def overspent(measures: Mapping[str, Entry]) -> dict[int, float]:
    """Budget -> what contexts cost on average, where that is more: the mean of `survival.context_tokens@2000`."""
    costs = {name: entry["value"] for name, entry in measures.items() if name.startswith("survival.context_tokens@")}
    of_budget = {int(name.partition("@")[2]): value for name, value in costs.items() if value is not None}
    return {budget: value for budget, value in of_budget.items() if value > budget}


def conversation_direction(measure: str) -> Direction:
    """Which values of one of `conversation_means` are better."""
    return "lower" if measure.partition(".")[2].partition("@")[0] in _COSTS else "higher"
