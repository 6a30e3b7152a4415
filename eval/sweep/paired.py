"""Points of a sweep held against the best of them, query by query."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from eval.experiment.run_folder import read_table
from eval.measures.names import SYSTEM_ARM
from eval.significance import bootstrap_means, holm, sign_flip_p_values
from eval.sweep.results import PointResult, is_cost

PAIRED_SCHEMA: dict[str, pl.DataType] = {
    "measure": pl.String(),
    "point": pl.Int64(),
    "label": pl.String(),
    "n": pl.Int64(),
    "value": pl.Float64(),
    "value_low": pl.Float64(),
    "value_high": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "p_holm": pl.Float64(),
}
"""A row for each measure and point, the best first; its differences to the best have no value in the best's own row."""

PAIRED = "paired.parquet"
PER_QUERY = "per_query.parquet"
CONFIDENCE = 0.95
_RESAMPLES, _SEED = 10_000, 0


def paired(folder: Path, results: Sequence[PointResult], measures: Sequence[str]) -> pl.DataFrame:
    """Compare each point with the best one, by each measure of queries that is no cost: rows of `PAIRED_SCHEMA`.

    The interval of a difference is that of a bootstrap over queries, its p value that of a permutation test that swaps
    the two values of a query; Holm corrects over the points of a measure. The best was chosen by the same queries, so a
    difference flatters it a little.

    Args:
        folder: of the sweep.
        results: of its points; those over other data than the first that finished are left out.
        measures: that are compared, as far as queries have them.
    """
    finished = [(number, result) for number, result in enumerate(results) if result.summary is not None]
    digests = [(result.summary or {}).get("dataset", {}).get("digest") for _, result in finished]
    same = [one for one, digest in zip(finished, digests, strict=True) if digest == digests[0]]
    tables = {number: _values(folder / result.name) for number, result in same}
    rows = [row for measure in measures if not is_cost(results, measure) for row in _rows(measure, same, tables)]
    return pl.DataFrame(rows, schema=PAIRED_SCHEMA, orient="row")


def markdown(rows: pl.DataFrame) -> str:
    """The rows as a table for a page; empty where nothing was compared."""
    if rows.is_empty():
        return ""
    interval = f"{100 * CONFIDENCE:g} % interval"
    lines = [
        "## Each point against the best, paired by query",
        "",
        f"| measure | point | n | mean | to the best | {interval} | p (Holm) |",
        "|---|--:|--:|--:|--:|---|--:|",
    ]
    for row in rows.iter_rows(named=True):
        gap, between, p_value = gap_cells(row)
        lines.append(
            f"| {row['measure']} | {row['point']} | {row['n']} | {row['value']:.3f} | {gap} | {between} | {p_value} |"
        )
    return "\n".join(["", *lines, ""])


def gap_cells(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """The difference of a row to the best, its interval, and its p value."""
    if row["difference"] is None:
        return "", "", "best"
    between = "" if row["low"] is None else f"[{row['low']:+.3f}, {row['high']:+.3f}]"
    p_value = "" if row["p_holm"] is None else f"{row['p_holm']:.3f}" if row["p_holm"] >= 0.0005 else "< 0.001"
    return f"{row['difference']:+.3f}", between, p_value


def _values(folder: Path) -> pl.DataFrame:
    if not (folder / PER_QUERY).exists():  # of a point that another machine keeps
        return pl.DataFrame(schema={"query_id": pl.String(), "measure": pl.String(), "value": pl.Float64()})
    read = read_table(folder / PER_QUERY, ["arm", "query_id", "measure", "value"])
    return read.filter(pl.col("arm") == SYSTEM_ARM)


def _rows(
    measure: str, points: Sequence[tuple[int, PointResult]], tables: dict[int, pl.DataFrame]
) -> list[tuple[object, ...]]:
    """A row for each point that judges the same queries as the best."""
    of_point = {number: tables[number].filter(measure=measure).sort("query_id") for number, _ in points}
    means = {number: float(values["value"].mean()) for number, values in of_point.items() if len(values)}  # type: ignore[arg-type]
    if len(means) < 2:
        return []
    top = max(means, key=lambda number: means[number])
    asked = of_point[top]["query_id"]
    labels = dict(points)
    compared = [number for number in means if of_point[number]["query_id"].equals(asked)]
    compared.sort(key=lambda number: -means[number])
    values = np.column_stack([of_point[number]["value"].to_numpy() for number in compared])
    differences = values - values[:, [0]]
    low, high = bootstrap_means(differences, _RESAMPLES, CONFIDENCE, _SEED)
    p_values = sign_flip_p_values(differences, _RESAMPLES, _SEED)
    p_values[0] = np.nan
    corrected = holm(p_values)
    rows: list[tuple[object, ...]] = []
    for at, number in enumerate(compared):
        own = (labels[number].measures or {}).get(measure, {})
        gap = [np.nan] * 5 if not at else [differences[:, at].mean(), low[at], high[at], p_values[at], corrected[at]]
        plain = (None if np.isnan(one) else float(one) for one in gap)
        told = (means[number], own.get("low"), own.get("high"), *plain)
        rows.append((measure, number, labels[number].label, len(asked), *told))
    return rows
