"""Measures of conversations in the form of measures of queries: what `survival` and `resume` tell of the system.

A run that asks no question is compared by them, conversation by conversation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from eval.experiment.run_folder import read_table, sections
from eval.measures.means import Entry
from eval.measures.measure import Direction
from eval.measures.names import SYSTEM_ARM
from eval.measures.sessions import ALL_KINDS

_COSTS = (
    *("missing", "mutated", "stale", "lost", "steps", "rounds"),
    *("recall_tokens", "task_tokens", "context_tokens", "filler_tokens"),
)
_COUNTS = ("facts", "probes", "summaries", "recalled")
"""Of these neither more nor less is better."""
_BY_PRODUCTS = ("recoverable", *_COUNTS)
"""More of what is recoverable is less of what is retained, or of what is missing."""
_COLUMNS = ("arm", "budget", "conversation_id", "measure", "value")


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


def conversation_values(folder: Path, summary: Mapping[str, Any]) -> pl.DataFrame:
    """conversation_id, measure, value: what `conversation_means` are means of.

    Raises:
        LcmError: if a file of the run folder is missing or damaged.
    """
    means = conversation_means(summary)
    parts = [pl.DataFrame(schema={"conversation_id": pl.String(), "measure": pl.String(), "value": pl.Float64()})]
    for name in dict.fromkeys(measure.partition(".")[0] for measure in means):
        rows = read_table(folder / f"{name}.parquet", _COLUMNS, ("cycle", "kind")).filter(arm=SYSTEM_ARM)
        if "kind" in rows.columns:
            rows = rows.filter(kind=ALL_KINDS)
        if "cycle" in rows.columns:
            rows = rows.filter(pl.col("cycle") == pl.col("cycle").max().over("conversation_id"))
        named = pl.format("{}.{}@{}", pl.lit(name), "measure", "budget")
        parts.append(rows.select("conversation_id", named.alias("measure"), "value"))
    return pl.concat(parts).filter(pl.col("measure").is_in(list(means)))


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
