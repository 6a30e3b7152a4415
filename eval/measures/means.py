"""Means of values, with percentile bootstrap intervals over what was drawn: queries, or conversations.

A run that asks no question is compared by what `survival` and `resume` tell of the system, conversation by
conversation.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.names import SYSTEM_ARM, Direction
from eval.shape import sections
from eval.significance import bootstrap_means
from lcm.checks import check_range

ALL = "all"
"""The group of all queries, beside those of a category."""
MEANS_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "group": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
    "n": pl.Int64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
Entry = Mapping[str, float | None]
"""A mean as a summary tells it: value, n, low, high; None where it is no number."""
_COSTS = (
    *("missing", "mutated", "stale", "lost", "steps", "rounds"),
    *("recall_tokens", "task_tokens", "context_tokens", "filler_tokens"),
)
_COUNTS = ("facts", "probes", "summaries", "recalled")
"""Of these neither more nor less is better."""
_BY_PRODUCTS = ("recoverable", *_COUNTS)
"""More of what is recoverable is less of what is retained, or of what is missing."""
_BOUNDED = ("value", "n", "low", "high")
_MOST_KNOWN = 20_000
_KNOWN: "dict[tuple[Means, bytes], tuple[float, float]]" = {}
"""The intervals of columns of values that were told last, by what tells them apart: most measures have the same values
in many points of a sweep."""


@dataclass(frozen=True, slots=True)
class Means:
    """Means of measures, with percentile bootstrap intervals as these settings say."""

    resamples: int = 1000
    """Bootstrap draws."""
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, "confidence", gt=0, lt=1)
        check_range(self, "resamples", ge=1)
        check_range(self, "seed", ge=0)

    def of_queries(self, values: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
        """Average values of queries: rows of `MEANS_SCHEMA`.

        A group is `all`, a category, or a set of categories that the dataset names. A measure that judges none of a
        group's queries has no row there.

        Args:
            values: arm, query_id, measure, value.
        """
        category = {query.query_id: query.category for query in dataset.queries}
        categories = list(dict.fromkeys(category.values()))
        place = {name: at for at, name in enumerate(categories)}
        groups = {ALL: set(categories)} | {name: set(members) for name, members in dataset.groups.items()}
        groups |= {name: {name} for name in categories if len(categories) > 1 and name != ALL}
        # Every arm and measure is a column over the queries; one draw of queries serves all that judge the same ones.
        columns = values.select("arm", "measure").unique(maintain_order=True)
        query_ids = values["query_id"].unique(maintain_order=True)
        of_query = np.array([place[category[query_id]] for query_id in query_ids], dtype=np.int64)
        every = _wide(values, columns, query_ids)
        means = np.full((len(groups), 3, len(columns)), np.nan)
        counts = np.zeros((len(groups), len(columns)), dtype=np.int64)
        for at, members in enumerate(groups.values()):
            table = every[np.array([name in members for name in categories], dtype=np.bool_)[of_query]]
            judged = ~np.isnan(table)
            counts[at] = judged.sum(axis=0)
            for queries in {column.tobytes(): column for column in judged.T if column.any()}.values():
                same = (judged == queries[:, None]).all(axis=0)
                over = table[queries][:, same]
                means[at][:, same] = over.mean(axis=0), *self._intervals(over)
        arms = columns["arm"].to_list()
        first = {arm: place for place, arm in reversed(list(enumerate(arms)))}
        group_at, column_at = np.nonzero(counts)
        order = np.argsort([first[arms[at]] for at in column_at], kind="stable")
        group_at, column_at = group_at[order], column_at[order]
        named = columns[pl.Series(column_at, dtype=pl.UInt32)]
        told = {"group": pl.Series(list(groups), dtype=pl.String)[pl.Series(group_at, dtype=pl.UInt32)]}
        numbers = {name: means[group_at, row, column_at] for row, name in enumerate(("value", "low", "high"))}
        return pl.DataFrame(
            {"arm": named["arm"], "measure": named["measure"], **told, **numbers, "n": counts[group_at, column_at]}
        ).match_to_schema(pl.Schema(MEANS_SCHEMA))

    def _intervals(self, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Low and high of each column, shape (2, m): a column that another point of a sweep had is not drawn again."""
        keys = [(self, hashlib.blake2b(column.tobytes(), digest_size=16).digest()) for column in columns.T]
        new = [place for place, key in enumerate(keys) if key not in _KNOWN]
        if new:
            ends = bootstrap_means(columns[:, new], self.resamples, self.confidence, self.seed)
            for place, low, high in zip(new, *ends, strict=True):
                _KNOWN[keys[place]] = low, high
        found = np.array([_KNOWN[key] for key in keys]).T
        while len(_KNOWN) > _MOST_KNOWN:
            _KNOWN.pop(next(iter(_KNOWN)))
        return found

    def of_conversations(self, rows: pl.DataFrame) -> dict[str, dict[str, Entry]]:
        """Average values of conversations: arm -> measure -> entry.

        Args:
            rows: arm, conversation_id, measure, value.
        """
        found: dict[str, dict[str, Entry]] = {}
        for (arm, measure), group in rows.group_by(["arm", "measure"], maintain_order=True):
            column = group["value"].to_numpy().reshape(-1, 1)
            low, high = bootstrap_means(column, self.resamples, self.confidence, self.seed)
            told = {"value": float(np.mean(column)), "n": len(column), "low": float(low[0]), "high": float(high[0])}
            found.setdefault(str(arm), {})[str(measure)] = entry(told)
        return found


def _wide(values: pl.DataFrame, columns: pl.DataFrame, query_ids: pl.Series) -> npt.NDArray[np.float64]:
    """Values as a table, shape (queries, columns), NaN where there is none.

    Args:
        values: arm, query_id, measure, value.
        columns: arm, measure, each once.
    """
    (arms, measures), (of_arm, of_measure) = (
        [_numbered(frame[name], columns[name].unique(maintain_order=True)) for name in ("arm", "measure")]
        for frame in (columns, values)
    )
    place = np.zeros((arms.max(initial=0) + 1, measures.max(initial=0) + 1), dtype=np.int64)
    place[arms, measures] = np.arange(len(columns))
    table = np.full((len(query_ids), len(columns)), np.nan, order="F")
    table[_numbered(values["query_id"], query_ids), place[of_arm, of_measure]] = values["value"].to_numpy()
    return table


def _numbered(names: pl.Series, known: pl.Series) -> npt.NDArray[np.int64]:
    """The place of each name among those that are known."""
    return names.cast(pl.Enum(known)).to_physical().cast(pl.Int64).to_numpy()


def entry(row: Mapping[str, float]) -> Entry:
    return {key: row[key] if math.isfinite(row[key]) else None for key in _BOUNDED}


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
