"""The best point of a sweep, and what it gains over the default beyond chance."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.pairing import PAIRED_SCHEMA, Pairing, comparable, shared_queries
from eval.measures.means import overspent
from eval.run import Run
from eval.study.results import PointResult, changed_measures, drawn, is_cost, marked
from eval.table import Cell, Column, Row, Table, interval, paired_cells, plain_markdown, probability, signed

PAIRED = "paired.parquet"
ALPHA = 0.05
CONFIDENCE = 1 - ALPHA
_RESAMPLES = 10_000
_FIRST = ("recall@10", "nDCG@10")
"""Of the measures that every table has, those that decide before the others."""

POINTS_SCHEMA: dict[str, pl.DataType] = {
    "point": pl.Int64(),
    "label": pl.String(),
    **{name: kind for name, kind in PAIRED_SCHEMA.items() if name != "side"},
}
"""A paired row, and the point that it is of; best first."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What a sweep found beside its baseline: the default, unless that cannot be measured."""

    measure: str
    """By which all are held against the baseline."""
    point: int
    """The highest of those that are significantly better; the highest of all where none is."""
    best: PointResult
    """That point."""
    baseline: PointResult
    is_default: bool
    """Whether the baseline is what the command describes without what is swept."""
    others: int
    """Points that finished, but for the baseline."""
    rows: pl.DataFrame
    """Of `POINTS_SCHEMA`: each point against the baseline; empty where none can be paired with it."""
    stars: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Measure -> the points that are best by it, and significantly better than the baseline."""

    @property
    def against(self) -> str:
        return "the default" if self.is_default else f"the first point, {self.baseline.label}"

    @property
    def baseline_name(self) -> str:
        return "the default" if self.is_default else self.baseline.label

    @property
    def row(self) -> Mapping[str, Any] | None:
        """That of the best point; None where it is the baseline, or cannot be paired with it."""
        return next(self.rows.filter(point=self.point).iter_rows(named=True), None)

    @property
    def is_better(self) -> bool:
        """Whether any point is significantly better than the baseline."""
        return self.row is not None and self.row["verdict"] == "better"

    @property
    def drawn(self) -> str:
        """What is paired: queries or conversations."""
        return drawn([self.best])

    def told(self) -> str:
        """What the choice is worth, in a sentence, and what it overspends."""
        return f"{self._told()}{self._overspending()}"

    def _overspending(self) -> str:
        told = overspent(self.best.measures or {}) if self.drawn == "conversation" else {}
        if not told:
            return ""
        costs = ", ".join(f"{value:,.0f} tokens on average under {budget:,}" for budget, value in told.items())
        return f"; its contexts overspend their budget: {costs}"

    def _told(self) -> str:
        highest = f"{self.point} {self.best.label}"
        if self.is_better:
            return f"best by {self.measure}: {highest}: {self._difference()}"
        if not self.others:
            return f"Keep {self.against}: no other setting finished"
        settings = f"none of {self.others} settings" if self.others != 1 else "the one other setting"
        verb = "is" if self.others != 1 else "is not"
        keep = f"Keep {self.against}: {settings} {verb} significantly better by {self.measure}"
        if self.best.name == self.baseline.name:
            return keep
        if self.row is None:
            asked = "asked other questions" if self.drawn == "query" else "read on other conversations"
            return f"{keep}; the highest, {highest}, was {asked}, and cannot be held against it"
        return f"{keep}; the highest is {highest}: {self._difference()}"

    def _difference(self) -> str:
        """Of the best point, which is paired."""
        row = self.row
        assert row is not None
        p = (
            f"p {probability(row['p_holm'])}, corrected for having chosen among {len(self.rows)}"
            if row["p_holm"] is not None
            else f"no p of so few: n {row['n']}"
        )
        difference = f"{signed(row['difference'], row['lower_is_better'])} {interval(row)}"
        return f"{difference} against {self.against}, {row['verdict']} ({p})"

    def record(self) -> dict[str, Any]:
        """For the summary of the sweep."""
        told = ("difference", "low", "high", "p_holm", "verdict")
        return {
            "told": self.told(),
            "folder": self.best.name,
            "label": self.best.label,
            "measure": self.measure,
            "value": self.best.value(self.measure),
            "baseline": self.baseline.name,
            "is_default": self.is_default,
            "stars": {name: list(points) for name, points in self.stars.items()},
            **{name: None if self.row is None else self.row[name] for name in told},
        }


def with_baseline(rows: pl.DataFrame) -> list[Mapping[str, Any] | None]:
    """Rows of `POINTS_SCHEMA`, best first, and None where the baseline stands among them."""
    told: list[Mapping[str, Any] | None] = list(rows.iter_rows(named=True))
    better = int((rows["candidate"] > rows["baseline"]).sum())
    return [*told[:better], None, *told[better:]]


def not_taken(named: str, against: str, what: str) -> str:
    """Say why nothing is taken by itself where nothing is significantly better than what it was held against.

    Args:
        what: how to name the best of them all the same.
    """
    return f"{named}: no setting is significantly better than {against}: keep it, or name {what}"


def next_commands(folder: Path, *, is_better: bool) -> list[str]:
    """What is asked of a finished sweep: to export its best point, where that is better, and to compare its points."""
    export, compare = ["lcm", "export", str(folder), f"to=presets/{folder.name}"], ["lcm", "compare", str(folder)]
    return [shlex.join(one) for one in ([export, compare] if is_better else [compare])]


def deciding_measure(results: Sequence[PointResult], measures: Sequence[str]) -> str | None:
    """The measure that the best point is best by: the first of queries that is no cost and tells points apart, those
    first that what is swept changes, then `recall@10`, then `nDCG@10`."""
    changed = changed_measures(results)
    usual = sorted((name for name in measures if name not in changed), key=_rank)
    quality = (name for name in (*changed, *usual) if not is_cost(results, name))
    return next((name for name in quality if marked(results, name) is not None), None)


def gain(
    folder: Path, results: Sequence[PointResult], default: PointResult | None, measures: Sequence[str]
) -> Gain | None:
    """Each point that finished against the default, paired by query, and the best of those that are better.

    All points are tested by one measure, and Holm corrects over them; intervals hold for all of them together
    (Bonferroni). So the best may be chosen by these very queries: the chance that it is called better than the default
    where no point is, is at most .05. Its difference is still the largest of many, and so a little flattered.

    Args:
        folder: of the sweep.
        default: what the command describes without what is swept, be it a point or beside them; None = it cannot be
            measured, and the first point that finished stands for it.
        measures: of the table, from which the one that decides is taken.
    Returns:
        None where no point is best: none finished, or all are equal by every measure, to the default too.
    """
    measure = deciding_measure(results, measures)
    if measure is None and default is not None:  # points that are equal may all be better, or worse
        measure = deciding_measure([*results, default], measures)
    finished = {number: result for number, result in enumerate(results) if result.summary is not None}
    values = {
        number: value for number, result in finished.items() if (value := result.value(measure or "")) is not None
    }
    if measure is None or not values:
        return None
    is_default = default is not None and default.summary is not None
    baseline = default if default is not None and is_default else next(iter(finished.values()))
    sides = Sides(folder, baseline, measures)
    rows = rows_against(sides, {number: finished[number] for number in values}, [measure])
    better = rows.filter(verdict="better")["point"].to_list()  # best first
    point = better[0] if better else max(values, key=lambda number: values[number])  # the first of equals
    others = {number: result for number, result in finished.items() if result.name != baseline.name}
    stars = {measure: better[:1]} if better else {}
    for name in measures:
        if name != measure and (starred := _starred(sides, results, others, name)):
            stars[name] = starred
    return Gain(measure, point, results[point], baseline, is_default, len(others), rows, stars)


def _starred(
    sides: "Sides", results: Sequence[PointResult], others: Mapping[int, PointResult], measure: str
) -> list[int]:
    """The points that are best by a measure, and better than the baseline, corrected for the number of points that they
    are the best of (Bonferroni)."""
    top = marked(results, measure)
    best = {number: one for number, one in others.items() if top is not None and one.value(measure) == top}
    if not best:
        return []
    return list(rows_against(sides, best, [measure], ALPHA / len(others)).filter(verdict="better")["point"])


def paired_table(rows: pl.DataFrame, baseline: str, most: int | None = None) -> Table:
    """Each point against the baseline, best first, the baseline among them.

    Args:
        rows: of `POINTS_SCHEMA`, at least one.
        baseline: what it is called.
        most: so many points are shown; None = all.
    """
    measure, interval = rows["measure"][0], f"{100 * CONFIDENCE:g} % interval of all"
    columns = (
        Column("point", "label"),
        Column("n", "number"),
        Column(measure, "number"),
        Column("difference", "change"),
        Column(interval, "interval"),
        Column("p (Holm)", "p"),
        Column("verdict", "verdict"),
    )
    told: list[Row] = [
        (Cell(baseline, tone="own"), "", rows["baseline"][0], "", "", "", "baseline")
        if row is None
        else (f"{row['point']} {row['label']}", row["n"], row["candidate"], *paired_cells(row), row["verdict"])
        for row in with_baseline(rows if most is None else rows.head(most))
    ]
    return Table(
        columns,
        told,
        lacks=[["n", *more] for more in ([], ["p (Holm)"], ["p (Holm)", measure], ["difference", interval])],
    )


def markdown(found: Gain | None) -> str:
    """The rows as a table for a page, and what they come to; empty where nothing was compared."""
    if found is None:
        return ""
    heading = f"## Each point against {plain_markdown(found.against)}, paired by {found.drawn}"
    lines = ["", heading, "", plain_markdown(found.told())]
    if not found.rows.is_empty():
        lines += ["", paired_table(found.rows, found.baseline_name).markdown()]
    return "\n".join([*lines, ""])


def _rank(measure: str) -> int:
    plain = measure.removeprefix("session.")
    return _FIRST.index(plain) if plain in _FIRST else len(_FIRST)


class Sides:
    """The points of a sweep or study as they are held against one of them: each is read once, and of each that much is
    kept which is compared."""

    def __init__(self, folder: Path, baseline: PointResult, measures: Sequence[str]) -> None:
        """`folder`: in which the folders of all lie; `measures`: those that are compared."""
        self._folder, self._measures = folder, list(measures)
        self.baseline = baseline.name
        self.base = self._read(baseline)
        """None where another machine keeps it."""
        self._known: dict[str, Run | None] = {}

    def paired(self, result: PointResult) -> Run | None:
        """A point's own numbers; None of one that is the baseline, that another machine keeps, or that was asked other
        queries."""
        if result.name == self.baseline or self.base is None:
            return None
        if result.name not in self._known:
            self._known[result.name] = self._read(result)
        return self._known[result.name]

    def _read(self, result: PointResult) -> Run | None:
        kept = self._folder / result.name
        if not (kept / "per_query.parquet").exists():
            return None
        run, base = comparable(kept, result.label), getattr(self, "base", None)
        if base is None or run.queries.equals(base.queries):
            is_alike = True
        else:
            is_alike = len(shared_queries([base, run])) == len(base.queries) == len(run.queries)
        if not is_alike:
            return None
        values = run.values.filter(pl.col("measure").is_in(self._measures))
        queries = run.queries if base is None else base.queries
        return Run(kept, result.label, values=values, queries=queries, directions=result.directions or run.directions)


def rows_against(
    sides: Sides, points: Mapping[int, PointResult], measures: Sequence[str], alpha: float = ALPHA
) -> pl.DataFrame:
    """Each point against the baseline, paired by query; Holm corrects over all rows, and so do the intervals
    (Bonferroni).

    Args:
        measures: some of those of the sides.
        alpha: below which the corrected p of a point that is better lies.
    Returns:
        Rows of `POINTS_SCHEMA`; none of a point that cannot be paired.
    """
    paired = {number: side for number, result in points.items() if (side := sides.paired(result)) is not None}
    if sides.base is None or not paired:
        return pl.DataFrame(schema=POINTS_SCHEMA)
    tests = len(paired) * len(measures)
    resamples = max(_RESAMPLES, math.ceil(2 * tests / alpha))
    pairing = Pairing(alpha=alpha, resamples=resamples, confidence=1 - alpha / tests)
    rows = pairing.rows(sides.base, list(paired.values()), measures).with_columns(
        point=pl.col("side").replace_strict(dict(enumerate(paired)), return_dtype=pl.Int64)
    )
    labels = {number: result.label for number, result in points.items()}
    return (
        rows.with_columns(label=pl.col("point").replace_strict(labels, return_dtype=pl.String))
        .select(list(POINTS_SCHEMA))
        .sort("candidate", "point", descending=[True, False])
    )
