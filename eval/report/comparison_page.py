"""The page of a comparison (which side is better by what, what differs between them) and that of a gate (what it says,
the rows that it rests on)."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from eval.comparison.comparison import Comparison
from eval.comparison.report import explained, headline, name, named, table
from eval.dataset.card import Card
from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression import report as wording
from eval.regression.regression import GatedComparison
from eval.report.figure import Interval, intervals, scatter
from eval.report.page import Facts, Notes, Part, ReportPage, Section
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
    """
    sides, baseline = [standing.side for standing in comparison.standings], comparison.baseline.side
    return ReportPage(
        kind="comparison",
        title=comparison.title,
        headline=headline(comparison),
        sections=[
            _verdicts(comparison),
            lost(columns),
            differences(baseline, [side for side in sides if side is not baseline]),
            categories(baseline, sides, comparison.by, comparison.by in comparison.costs),
            curves(columns, queries),
            dataset_section(baseline.summary, card, (comparison.queries, comparison.judged)),
            systems(sides),
            _notes(comparison.notes, sides),
        ],
        label=comparison.label,
    )


def differences(baseline: Run, others: Sequence[Run]) -> Section:
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
    return Section("differences", "What differs", parts)


def categories(baseline: Run, sides: Sequence[Run], measure: str, is_cost: bool) -> Section:
    """The means of a measure by kind of question, of each side, and its difference from the baseline's: over the
    questions of which all that have any value have one."""
    asked = baseline.queries.select("query_id")
    for side in (baseline, *sides):
        judged = asked.join(side.values.filter(measure=measure), on="query_id", how="semi")
        asked = asked if judged.is_empty() else judged
    means = [_by_category(side, asked, measure) for side in sides]
    base = next(of for of, side in zip(means, sides, strict=True) if side is baseline)

    def cell(side: Run, mean: tuple[float, int] | None, usual: float) -> Cell | None:
        if mean is None or side is baseline:
            return mean and Cell(mean[0], is_cost)
        moved = mean[0] - usual
        tone: Tone = "" if not moved else "better" if (moved < 0) == is_cost else "worse"
        return Cell(mean[0], is_cost, tone, signed(moved, is_cost))

    rows: list[Row] = [
        (category, n, *(cell(side, of.get(category), usual) for side, of in zip(sides, means, strict=True)))
        for category, (usual, n) in base.items()
    ]
    table = Table(
        [*titled("category", ("n",)), *(Column(side.name, "value") for side in sides)],
        rows,
        f"Mean {measure}; below it the difference from the baseline, which no test has looked at",
    )
    return Section("categories", "By kind of question", [table] if len(rows) > 1 else [])


def systems(sides: Sequence[Run]) -> Section:
    """Each side's system, as data passes through it."""
    parts = [part for side in sides if side.config for part in (Notes([side.name]), system_flow(side.config))]
    return Section("systems", "What was run", parts, "What is off is not drawn.")


def _notes(told: Sequence[str], sides: Sequence[Run]) -> Section:
    """What is told of all, and each side's own notes and what it survived, with its name."""
    told = list(told)
    for side in sides:
        incidents = (side.summary.get("incidents") or {}).items()
        survived = [f"survived: {what}, {times} times" for what, times in incidents]
        told += [
            f"{side.name}: {line}"
            for line in (*survived, *side.summary.get("notes", ()), *side.summary.get("flags", ()))
        ]
    return Section("notes", "Notes", [Notes(list(dict.fromkeys(told)))] if told else [])


def _verdicts(comparison: Comparison) -> Section:
    drawn = [
        Interval(name(comparison, comparison.standings[row["side"]]), row["difference"], row["low"], row["high"])
        for row in comparison.rows.filter(measure=comparison.by).iter_rows(named=True)
    ]
    caption = f"{comparison.by}: difference from {comparison.baseline.side.name}"
    parts: list[Part] = [intervals(drawn, caption, zero=0.0)] if drawn else []
    parts.append(replace(table(comparison), caption=explained(comparison)))
    for cost, paid in comparison.paid().items():
        points = [
            (i + 1, at, Interval(named(comparison, one), value, low, high, not one.is_baseline))
            for i, at, value, low, high in paid
            for one in [comparison.standings[i]]
        ]
        if len(points) > 1:
            caption = f"{comparison.by} over {cost}: up and to the left is better"
            parts.append(scatter(points, caption, cost, comparison.by))
    return Section("verdict", "Better, worse, or not to be told", parts)


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
    sides = [candidate, baseline]
    return ReportPage(
        kind="regression",
        title=f"{candidate.name} against {baseline.name}: {comparison.gate}",
        headline=[wording.headline(comparison)],
        sections=[
            _gate(comparison, first),
            lost(columns),
            differences(baseline, [candidate]),
            *([] if first is None else [categories(baseline, sides, first, is_cost=False)]),
            curves(columns, queries),
            dataset_section(baseline.summary, card, (len(baseline.queries), judged)),
            systems(sides),
            _notes([*comparison.notes, *(unknown if comparison.unknown else ())], sides),
        ],
        label=generated_label(baseline.summary["dataset"]),
    )


def _gate(comparison: GatedComparison, first: str | None) -> Section:
    sides = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    told = [(word, f"{side.name} ({wording.run_in_words(side.summary)})") for word, side in sides.items()]
    parts: list[Part] = [Facts(told)]
    drawn = [
        Interval(row["group"], row["difference"], row["low"], row["high"], row["group"] == ALL)
        for row in comparison.rows.filter(measure=first or "").iter_rows(named=True)
        if row["difference"] is not None
    ]
    if drawn:
        parts.append(intervals(drawn, f"{first}: what the candidate changes, over all questions and by kind", 0.0))
    rows = wording.table([*comparison.rows.iter_rows(named=True)], comparison.confidence)
    parts.append(replace(rows, caption=f"Paired by question; {wording.explained(comparison)}"))
    return Section("gate", "What the gate says", parts)
