"""What the gate found, on the terminal."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from rich.markup import escape
from rich.table import Table

from eval.comparison.wording import changes
from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression.gate import GatedComparison
from eval.regression.wording import CORRECTED, cells, headline
from lcm.encoding import printable
from pipelines.views.fitting import fullest
from pipelines.views.terminal import console, kept, say

_COLORS = {"better": "green", "worse": "red", "fine": "green", "regressed": "red", "cannot tell": "yellow"}
_NUMBERS = ("n", "changed", "baseline", "candidate", "difference")
_LEFT_OUT = (
    (),
    ("n", "changed"),
    ("n", "changed", "tolerance"),
    ("n", "changed", "tolerance", "p (Holm)"),
    ("n", "changed", "tolerance", "p (Holm)", "baseline"),
    ("n", "changed", "tolerance", "p (Holm)", "baseline", "candidate"),
)
"""What a narrow terminal lacks."""
_TEXT = 60  # letters of a query


def show_regression(comparison: GatedComparison, report: Path) -> None:
    """The rows over all queries, those of categories that moved or regressed, the queries that changed most, and what
    the gate says."""
    out = console()
    rows = comparison.rows
    is_shown = (pl.col("group") == ALL) | pl.col("verdict").is_in(["better", "worse"])
    shown = list(rows.filter(is_shown).iter_rows(named=True))
    table, left_out = fullest(out, partial(_table, shown, f"{100 * comparison.confidence:g} % interval"), _LEFT_OUT)
    label = generated_label(comparison.baseline.summary["dataset"])
    paired = f"paired by query; {label}" if label else "paired by query"
    say(f"{comparison.candidate.name} against {comparison.baseline.name}, {paired}")
    out.print(table, highlight=False, soft_wrap=False)
    say(f"an interval is of its row alone; {CORRECTED}")
    if left_out:
        say(f"{', '.join(left_out)} in a wider terminal; {report} has all")
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


def _table(rows: Sequence[Mapping[str, Any]], interval: str, left_out: Collection[str]) -> Table:
    headings = (*_NUMBERS, interval, "p (Holm)", "verdict", "tolerance", "gate")
    table = Table()
    table.add_column("measure", overflow="fold")
    for heading in headings:
        if heading not in left_out:
            is_number = heading in (*_NUMBERS, "p (Holm)", "tolerance")
            table.add_column(heading, justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        measure = row["measure"] if row["group"] == ALL else f"{row['measure']}, {row['group']}"
        told = [cell for heading, cell in zip(headings, cells(row), strict=True) if heading not in left_out]
        table.add_row(escape(printable(measure)), *map(_coloured, told))
    return table


def _coloured(cell: str) -> str:
    return f"[{_COLORS[cell]}]{cell}[/{_COLORS[cell]}]" if cell in _COLORS else escape(cell)
