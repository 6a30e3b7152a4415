"""A comparison on the terminal."""

from pathlib import Path

import polars as pl
from rich.markup import escape
from rich.table import Table

from eval.dataset.dataset import generated_label
from eval.regression.comparison import ALL, Comparison
from eval.regression.wording import cells, changes, headline
from lcm.encoding import well_formed
from pipelines.views.terminal import console, say

_COLORS = {"fine": "green", "regressed": "red", "could not tell": "yellow"}
_TEXT = 60  # letters of a query


def show_comparison(comparison: Comparison, report: Path) -> None:
    """The rows over all queries and those of categories that regressed, the worst queries, the verdict."""
    out = console()
    rows = comparison.rows
    shown = rows.filter((pl.col("group") == ALL) | (pl.col("verdict") == "regressed"))
    table = Table("group", "measure")
    for heading in ("n", "changed", "baseline", "candidate", "difference"):
        table.add_column(heading, justify="right")
    table.add_column(f"{100 * comparison.confidence:g} % interval")
    for heading in ("tolerance", "p (Holm)"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    for row in shown.iter_rows(named=True):
        color = _COLORS[row["verdict"]]
        said = f"[{color}]{row['verdict']}[/{color}]"
        table.add_row(escape(well_formed(row["group"])), row["measure"], *map(escape, cells(row)), said)
    label = generated_label(comparison.baseline.summary["dataset"])
    paired = f"paired by query; {label}" if label else "paired by query"
    say(f"{comparison.candidate.name} against {comparison.baseline.name}, {paired}")
    out.print(table, highlight=False, soft_wrap=False)
    hidden = rows.filter((pl.col("group") != ALL) & (pl.col("verdict") != "regressed"))
    if not hidden.is_empty():
        untold = (hidden["verdict"] == "could not tell").sum()
        say(f"{len(hidden)} rows of categories did not regress; {untold} of them could not be told")
    if comparison.left_out:
        say(f"not measured in either: {', '.join(comparison.left_out)}")
    for query in comparison.worse:
        text = " ".join(query.text.split())
        text = text if len(text) <= _TEXT else f"{text[: _TEXT - 3]}..."
        say(f"worse: {query.query_id} {text!r}: {changes(query, comparison.costs)}")
    say(f"{comparison.verdict}: {headline(comparison)}")
    say(f"Kept, with the rankings of both sides: {report}")
