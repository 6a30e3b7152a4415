"""What the gate found, on the terminal."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression.regression import GatedComparison
from eval.regression.report import CORRECTED, changes, headline, table
from pipelines.views.terminal import kept, say, show

_TEXT = 60  # letters of a query


def show_regression(comparison: GatedComparison, report: Path) -> None:
    """The rows over all queries, those of categories that moved or regressed, the queries that changed most, and what
    the gate says."""
    rows = comparison.rows
    is_shown = (pl.col("group") == ALL) | pl.col("verdict").is_in(["better", "worse"])
    found = table([*rows.filter(is_shown).iter_rows(named=True)], comparison.confidence)
    named = [(measure if group == ALL else f"{measure}, {group}", *others) for group, measure, *others in found.rows]
    label = generated_label(comparison.baseline.summary["dataset"])
    paired = f"paired by query; {label}" if label else "paired by query"
    told = replace(
        found,
        columns=found.columns[1:],
        rows=named,
        caption=f"{comparison.candidate.name} against {comparison.baseline.name}, {paired}",
        notes=[f"an interval is of its row alone; {CORRECTED}"],
    )
    show(told, f"{report} has all")
    hidden = rows.filter(~is_shown & pl.col("gate").is_not_null())
    if not hidden.is_empty():
        untold = (hidden["gate"] == "cannot tell").sum()
        say(f"{len(hidden)} rows of categories got neither better nor worse; of {untold} the gate cannot tell")
    if comparison.left_out:
        say(f"not measured in either: {', '.join(comparison.left_out)}")
    for word, queries in (("better", comparison.better), ("worse", comparison.worse)):
        for query in queries:
            text = " ".join(query.text.split())
            text = text if len(text) <= _TEXT else f"{text[: _TEXT - 3]}..."
            say(f"{word}: {query.query_id} {text!r}: {changes(query, comparison.costs)}")
    for note in (*comparison.notes, *comparison.baseline.summary.get("notes", ())):
        say(f"note: {note}")
    say(headline(comparison))
    kept(report, ", with the rankings of both sides")
