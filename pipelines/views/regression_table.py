"""What the gate found, on the terminal."""

from pathlib import Path

import polars as pl
from rich.markup import escape
from rich.table import Table

from eval.comparison.wording import changes
from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression.gate import GatedComparison
from eval.regression.wording import cells, headline
from lcm.encoding import well_formed
from pipelines.views.terminal import console, kept, say

_COLORS = {"better": "green", "worse": "red", "fine": "green", "regressed": "red", "cannot tell": "yellow"}
_TEXT = 60  # letters of a query


def show_regression(comparison: GatedComparison, report: Path) -> None:
    """The rows over all queries, those of categories that moved or regressed, the queries that changed most, and what
    the gate says."""
    out = console()
    rows = comparison.rows
    is_shown = (pl.col("group") == ALL) | pl.col("verdict").is_in(["better", "worse"])
    table = Table("group", "measure")
    for heading in ("n", "changed", "baseline", "candidate", "difference"):
        table.add_column(heading, justify="right")
    table.add_column(f"{100 * comparison.confidence:g} % interval")
    table.add_column("p (Holm)", justify="right")
    table.add_column("verdict")
    table.add_column("tolerance", justify="right")
    table.add_column("gate")
    for row in rows.filter(is_shown).iter_rows(named=True):
        told = (
            f"[{_COLORS[cell]}]{cell}[/{_COLORS[cell]}]" if cell in _COLORS else escape(cell) for cell in cells(row)
        )
        table.add_row(escape(well_formed(row["group"])), row["measure"], *told)
    label = generated_label(comparison.baseline.summary["dataset"])
    paired = f"paired by query; {label}" if label else "paired by query"
    say(f"{comparison.candidate.name} against {comparison.baseline.name}, {paired}")
    out.print(table, highlight=False, soft_wrap=False)
    hidden = rows.filter(~is_shown)
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
    for note in comparison.baseline.summary.get("notes", ()):
        say(f"note: {note}")
    say(headline(comparison))
    kept(report, ", with the rankings of both sides")
