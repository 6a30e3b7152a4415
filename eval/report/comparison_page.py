"""The page of a comparison: which side is better by what, what differs between them, and every question by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from eval.comparison.comparison import Comparison
from eval.comparison.comparison_report import explained, headline, name, table
from eval.dataset.card import Card
from eval.report.column import ShownRanking
from eval.report.curves import rank_curves, token_curves
from eval.report.figure import Interval, Place, intervals, lines, scatter
from eval.report.parts import Facts, Figure, Notes, Part, ReportPage, Section
from eval.report.run_page import lost
from eval.report.system_flow import differing, system_flow
from eval.run import Run
from eval.table import Cell, Column, Row, Table, Tone, counted, signed, titled

_REPEATED = ("memory", "tracking", "executor", "stages", "cache", "means", "report")
"""Settings that decide no number, and the whole system, whose parts stand for themselves."""
_BESIDE = ("arms", "dataset", "distractors", "executor", "experiment", "judgements", "measures", "replay")
"""What is measured, how and beside what: no settings of the system."""


def comparison_page(
    comparison: Comparison, columns: Sequence[ShownRanking], queries: pl.DataFrame, card: Card | None = None
) -> ReportPage:
    """A page without its explorer.

    Args:
        columns: one a side that is shown, the one that is looked at first.
        queries: those that all were asked.
    """
    sides = [standing.side for standing in comparison.standings]
    found = [
        _verdicts(comparison),
        lost(columns),
        differences(comparison.baseline.side, [side for side in sides if side is not comparison.baseline.side]),
        categories(comparison.baseline.side, sides, comparison.by, comparison.by in comparison.costs),
        curves(columns, queries),
        dataset(comparison.baseline.side.summary, comparison.queries, comparison.judged, card),
        systems(sides),
        section_of_notes([*comparison.notes, *(note for side in sides for note in told_of(side))]),
    ]
    return ReportPage(
        kind="comparison",
        title=comparison.title,
        headline=headline(comparison),
        sections=[section for section in found if section is not None],
        label=comparison.label,
    )


def differences(baseline: Run, others: Sequence[Run]) -> Section | None:
    """What each side is set to otherwise than the baseline."""
    parts: list[Part] = []
    for side in others:
        if not (baseline.config and side.config):
            parts.append(Notes([f"{side.name}: a config.yaml is missing, so nothing is known of what differs"]))
            continue
        rows = differing(baseline.config, side.config, _REPEATED)
        own = [row for row in rows if row[0].partition(".")[0] not in _BESIDE]
        beside = [
            ".".join(row[0].split(".")[: 2 if row[0].startswith("measures.") else 1]) for row in rows if row not in own
        ]
        if own:
            columns = titled("key", (baseline.name, side.name), "words")
            parts.append(Table(columns, own, f"{side.name} differs in {counted(len(own), 'setting')}"))
        else:
            parts.append(Notes([f"{side.name}: its system is set as the baseline's is"]))
        if beside:
            parts.append(Notes([f"{side.name} was also measured otherwise, in: {', '.join(dict.fromkeys(beside))}"]))
    return Section("differences", "What differs", parts) if parts else None


def categories(baseline: Run, sides: Sequence[Run], measure: str, is_cost: bool) -> Section | None:
    """The means of a measure by kind of question, of each side, and its difference from the baseline's: over the
    questions of which all that have any value have one."""
    asked = baseline.queries.select("query_id")
    for side in (baseline, *sides):
        judged = asked.join(side.values.filter(measure=measure), on="query_id", how="semi")
        asked = asked if judged.is_empty() else judged
    means = [_by_category(side, asked, measure) for side in sides]
    base = means[next(i for i, side in enumerate(sides) if side is baseline)]
    if len(base) < 2:
        return None
    rows: list[Row] = []
    for category, (usual, n) in base.items():
        told: list[Any] = [category, n]
        for side, of_side in zip(sides, means, strict=True):
            if category not in of_side:
                told.append(None)
                continue
            value = of_side[category][0]
            moved = value - usual
            tone: Tone = "" if side is baseline or not moved else "better" if (moved < 0) == is_cost else "worse"
            told.append(Cell(value, is_cost, tone, "" if side is baseline else signed(moved, is_cost)))
        rows.append(told)
    table = Table(
        [*titled("category", ("n",)), *(Column(side.name, "value") for side in sides)],
        rows,
        f"Mean {measure}; below it the difference from the baseline, which no test has looked at",
    )
    return Section("categories", "By kind of question", [table])


def curves(columns: Sequence[ShownRanking], queries: pl.DataFrame) -> Section | None:
    """Over the questions of which all that have any value have one."""
    parts: list[Part] = []
    for column in columns:
        queries = queries if (judged := column.judged(queries)).is_empty() else judged
    for told, found, read in (
        ("ranks", rank_curves(columns, queries), "ranks that are read"),
        ("tokens", token_curves(columns, queries), "tokens that are read, documents whole and in order"),
    ):
        if found:
            parts.append(Figure(f"Recall by {read}", lines(found, f"recall by {told}", read, "recall")))
    return Section("curves", "How far one has to read", parts) if parts else None


def dataset(summary: Mapping[str, Any], queries: int, judged: int, card: Card | None) -> Section:
    told = summary["dataset"]
    pairs = [("dataset", told["name"]), ("protocol", told["protocol"]), ("digest", told["digest"][:16])]
    if card is not None:
        pairs[1:1] = [("what it is", card.title), ("licence", card.licence)]
    pairs.append(("questions that all were asked", f"{queries:,}, {judged:,} of them judged"))
    return Section("dataset", "What they were asked", [Facts(pairs)])


def systems(sides: Sequence[Run]) -> Section | None:
    """Each side's system, as data passes through it."""
    parts: list[Part] = []
    for side in sides:
        if side.config is not None:
            parts += [Notes([side.name]), system_flow(side.config)]
    return Section("systems", "What was run", parts, "What is off is not drawn.") if parts else None


def told_of(side: Run) -> list[str]:
    """A side's own notes and what it survived, with its name."""
    summary = side.summary
    incidents = [f"survived: {what}, {times} times" for what, times in (summary.get("incidents") or {}).items()]
    return [f"{side.name}: {line}" for line in (*incidents, *summary.get("notes", ()), *summary.get("flags", ()))]


def section_of_notes(told: Sequence[str]) -> Section | None:
    return Section("notes", "Notes", [Notes(list(dict.fromkeys(told)))]) if told else None


def _verdicts(comparison: Comparison) -> Section:
    parts: list[Part] = [replace(table(comparison), caption=explained(comparison))]
    first = comparison.rows.filter(measure=comparison.by)
    if len(first):
        drawn = [
            Interval(name(comparison, comparison.standings[row["side"]]), row["difference"], row["low"], row["high"])
            for row in first.iter_rows(named=True)
        ]
        words = f"{comparison.by}: difference from {comparison.baseline.side.name}"
        parts.insert(0, Figure(words, intervals(drawn, f"{words}; the table tells the numbers", zero=0.0)))
    for cost, points in _costs(comparison):
        words = f"{comparison.by} over {cost}: up and to the left is better"
        parts.append(Figure(words, scatter(points, f"{words}; the table tells the numbers", cost, comparison.by)))
    return Section("verdict", "Better, worse, or not to be told", parts)


def _costs(comparison: Comparison) -> list[tuple[str, list[Place]]]:
    """What each side costs, in tokens and in time, as far as that is known."""
    tokens = comparison.tokens()
    found: list[tuple[str, list[Place]]] = []
    if tokens is not None and tokens != comparison.by:
        found.append(
            (
                tokens,
                _places(
                    comparison,
                    {
                        i: one.means[tokens]["value"]
                        for i, one in enumerate(comparison.standings)
                        if tokens in one.means
                    },
                ),
            )
        )
    timed = {i: one.latency_ms["p50_ms"] for i, one in enumerate(comparison.standings) if one.latency_ms}
    found.append(("ms a live question, median", _places(comparison, timed)))
    return [(cost, points) for cost, points in found if len(points) > 1]


def _places(comparison: Comparison, costs: Mapping[int, float | None]) -> list[Place]:
    found = []
    for i, cost in costs.items():
        standing = comparison.standings[i]
        mean = standing.means.get(comparison.by)
        if cost is not None and mean is not None and mean["value"] is not None:
            label = f"{name(comparison, standing)}{' (baseline)' if standing.is_baseline else ''}"
            place = Place(i + 1, label, cost, mean["value"], mean["low"], mean["high"], not standing.is_baseline)
            found.append(place)
    return found


def _by_category(side: Run, asked: pl.DataFrame, measure: str) -> dict[str, tuple[float, int]]:
    """Category -> mean, and of how many of some questions."""
    values = side.values.filter(measure=measure).join(asked, on="query_id", how="semi")
    values = values.join(side.queries.select("query_id", "category"), on="query_id")
    told = values.group_by("category", maintain_order=True).agg(mean=pl.col("value").mean(), n=pl.len())
    return {str(category): (mean, n) for category, mean, n in told.sort("category").iter_rows()}
