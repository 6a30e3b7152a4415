"""The page of a gate: what it says, the rows that it rests on, what differs, and the questions that got worse first."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from eval.dataset.card import Card
from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression.gate import GatedComparison
from eval.regression.wording import explained, headline, run_in_words, table
from eval.report.column import ShownRanking
from eval.report.comparison_page import categories, curves, dataset, differences, section_of_notes, systems, told_of
from eval.report.figure import Interval, intervals
from eval.report.parts import Facts, Figure, Part, ReportPage, Section
from eval.report.run_page import lost


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
        dataset(baseline.summary, len(baseline.queries), judged, card),
        systems([candidate, baseline]),
        section_of_notes([*notes, *told_of(candidate), *told_of(baseline)]),
    ]
    return ReportPage(
        kind="regression",
        title=f"{candidate.name} against {baseline.name}: {comparison.gate}",
        headline=[headline(comparison)],
        sections=[section for section in found if section is not None],
        label=generated_label(baseline.summary["dataset"]),
    )


def _gate(comparison: GatedComparison, first: str | None) -> Section:
    parts: list[Part] = [
        Facts(
            [
                ("baseline", f"{comparison.baseline.name} ({run_in_words(comparison.baseline.summary)})"),
                ("candidate", f"{comparison.candidate.name} ({run_in_words(comparison.candidate.summary)})"),
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
    rows = table([*comparison.rows.iter_rows(named=True)], comparison.confidence)
    parts.append(replace(rows, caption=f"Paired by question; {explained(comparison)}"))
    return Section("gate", "What the gate says", parts)
