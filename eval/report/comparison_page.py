"""The page of a comparison (which side is better by what, what differs between them) and that of a gate (what it says,
the rows that it rests on)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from eval.comparison.comparison import Comparison
from eval.comparison.report import explained, headline, name, table
from eval.dataset.card import Card
from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression import report as wording
from eval.regression.regression import GatedComparison
from eval.report.figure import Interval, Place, intervals, scatter
from eval.report.page import Facts, Figure, Notes, Part, ReportPage, Section
from eval.report.ranking import ShownRanking
from eval.report.run_page import curves, dataset_section, lost
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
        dataset_section(comparison.baseline.side.summary, card, (comparison.queries, comparison.judged)),
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


def _costs(comparison: Comparison) -> Iterator[tuple[str, list[Place]]]:
    """What each side costs, in tokens and in time, as far as that is known of two or more."""
    tokens = comparison.tokens()
    costs: dict[str, list[float | None]] = {}
    if tokens is not None and tokens != comparison.by:
        costs[tokens] = [one.means[tokens]["value"] if tokens in one.means else None for one in comparison.standings]
    costs["ms a live question, median"] = [
        one.side.latency_ms["p50_ms"] if one.side.latency_ms else None for one in comparison.standings
    ]
    for cost, values in costs.items():
        points = [
            Place(number, f"{name(comparison, one)}{' (baseline)' if one.is_baseline else ''}", value,
                  mean["value"], mean["low"], mean["high"], not one.is_baseline)
            for number, (one, value) in enumerate(zip(comparison.standings, values, strict=True), start=1)
            if value is not None and (mean := one.means.get(comparison.by)) and mean["value"] is not None
        ]  # fmt: skip
        if len(points) > 1:
            yield cost, points


def _by_category(side: Run, asked: pl.DataFrame, measure: str) -> dict[str, tuple[float, int]]:
    """Category -> mean, and of how many of some questions."""
    values = side.values.filter(measure=measure).join(asked, on="query_id", how="semi")
    values = values.join(side.queries.select("query_id", "category"), on="query_id")
    told = values.group_by("category", maintain_order=True).agg(mean=pl.col("value").mean(), n=pl.len())
    return {str(category): (mean, n) for category, mean, n in told.sort("category").iter_rows()}


def regression_page(
    comparison: GatedComparison, columns: Sequence[ShownRanking], queries: pl.DataFrame, card: Card | None = None
) -> ReportPage:
    """A page without its explorer.

    Args:
        columns: the candidate's, then the baseline's.
    """
    baseline, candidate = comparison.baseline, comparison.candidate
    first = next((row for row in comparison.rows["measure"] if row not in comparison.costs), None)
    judged = int(comparison.rows.filter(group=ALL)["n"].max() or 0)  # type: ignore[arg-type]
    unknown = [f"not known to agree, as a side's config.yaml does not tell: {', '.join(comparison.unknown)}"]
    notes = [*comparison.notes, *(unknown if comparison.unknown else ())]
    found = [
        _gate(comparison, first),
        lost(columns),
        differences(baseline, [candidate]),
        None if first is None else categories(baseline, [candidate, baseline], first, is_cost=False),
        curves(columns, queries),
        dataset_section(baseline.summary, card, (len(baseline.queries), judged)),
        systems([candidate, baseline]),
        section_of_notes([*notes, *told_of(candidate), *told_of(baseline)]),
    ]
    return ReportPage(
        kind="regression",
        title=f"{candidate.name} against {baseline.name}: {comparison.gate}",
        headline=[wording.headline(comparison)],
        sections=[section for section in found if section is not None],
        label=generated_label(baseline.summary["dataset"]),
    )


def _gate(comparison: GatedComparison, first: str | None) -> Section:
    parts: list[Part] = [
        Facts(
            [
                ("baseline", f"{comparison.baseline.name} ({wording.run_in_words(comparison.baseline.summary)})"),
                ("candidate", f"{comparison.candidate.name} ({wording.run_in_words(comparison.candidate.summary)})"),
            ]
        )
    ]
    drawn = [
        Interval(row["group"], row["difference"], row["low"], row["high"], row["group"] == ALL)
        for row in comparison.rows.filter(measure=first or "").iter_rows(named=True)
        if row["difference"] is not None
    ]
    if drawn:
        words = f"{first}: what the candidate changes, over all questions and by kind"
        parts.append(Figure(words, intervals(drawn, f"{words}; the table tells the numbers", zero=0.0)))
    rows = wording.table([*comparison.rows.iter_rows(named=True)], comparison.confidence)
    parts.append(replace(rows, caption=f"Paired by question; {wording.explained(comparison)}"))
    return Section("gate", "What the gate says", parts)
