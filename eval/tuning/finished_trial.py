"""Trials that have their values, and those values by fold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from eval.measures.names import SYSTEM_ARM
from eval.run import read_table
from eval.tuning.folds import Fold
from eval.tuning.objective import Objective

Sums = Mapping[str, Mapping[str, Sequence[float]]]
"""Measure -> fold -> sum over its queries that the measure judges, and how many these are."""


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """A trial of a study that has its values."""

    number: int
    assignment: Mapping[str, Any]
    values: tuple[float, ...]
    """By objective."""
    sums: Sums
    same_as: int | None = None
    """The trial whose configuration this is too, and whose values were taken over."""


def values_by_query(folder: Path) -> pl.DataFrame:
    """What a run found for each query: rows workspace_id, query_id, measure, value."""
    asked = read_table(folder / "queries.parquet", ["query_id", "workspace_id"])
    values = read_table(folder / "per_query.parquet").filter(arm=SYSTEM_ARM)
    return values.join(asked, on="query_id", how="left", maintain_order="left").select(
        "workspace_id", "query_id", "measure", "value"
    )


def sums_by_fold(values: pl.DataFrame, objectives: Sequence[Objective], folds: Sequence[Fold]) -> Sums:
    """Sum what was found for each query, by fold; times, which no query has, are left out.

    Args:
        values: as `values_by_query` gives them.
    """
    of_workspace = {workspace: fold.name for fold in folds for workspace in fold.workspaces}
    by_fold = (
        values.with_columns(fold=pl.col("workspace_id").replace_strict(of_workspace, return_dtype=pl.String))
        .group_by("measure", "fold")
        .agg(pl.col("value").sum(), n=pl.len())
    )
    found = {(measure, fold): [total, float(n)] for measure, fold, total, n in by_fold.iter_rows()}
    return {
        one.measure: {fold.name: found.get((one.measure, fold.name), [0.0, 0.0]) for fold in folds}
        for one in objectives
        if not one.is_time
    }


def table(
    trials: Sequence[FinishedTrial], objectives: Sequence[Objective], folds: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and counts, each of shape (trials, objectives, folds).

    A time is that of the whole run in every fold, with a count of 1.
    """
    shape = (len(trials), len(objectives), len(folds))
    sums, counts = np.zeros(shape), np.zeros(shape)
    for t, trial in enumerate(trials):
        for o, one in enumerate(objectives):
            if one.is_time:
                sums[t, o], counts[t, o] = trial.values[o], 1.0
            else:
                pairs = np.array([trial.sums[one.measure][fold] for fold in folds])
                sums[t, o], counts[t, o] = pairs[:, 0], pairs[:, 1]
    return sums, counts
