"""What a comparison found, as plain data and as Markdown."""

from collections.abc import Mapping
from typing import Any

from eval.comparison.comparison import Comparison, Standing
from eval.table import Cell, Column, Row, Table, paired_cells, plain_markdown

TIME = "ms, median"
"""What stands for a measure in the rows of latency: it is of other queries than the rest, so nothing is tested."""


_COLUMNS = (
    Column("measure", "label"),
    Column("side", "label"),
    Column("mean", "value"),
    Column("difference", "change"),
    Column("interval", "interval"),
    Column("p (Holm)", "p"),
    Column("verdict", "verdict"),
)
_LACKS = (("p (Holm)",), ("interval",), ("p (Holm)", "mean"), ("interval", "mean"), ("interval", "difference", "mean"))
"""On a narrow terminal the interval or p stays; beside a mean an interval alone would be read as the mean's."""


def table(comparison: Comparison, most_sides: int | None = None) -> Table:
    """A row for each measure and side: best first within a measure, the one that decides first.

    Args:
        most_sides: so many of the best are shown, and the baseline; None = all.
    """
    shown = [one for i, one in enumerate(comparison.standings) if one.is_baseline or i < (most_sides or i + 1)]
    rows: list[Row] = []
    lines = []
    for measure in comparison.measures:
        lines.append(len(rows))
        is_cost = measure in comparison.costs
        for standing in shown:
            mean = standing.means.get(measure)
            if mean is None:
                continue
            own = "" if mean["n"] == comparison.judged else f" n={mean['n']:g}"
            row = comparison.row(standing, measure)
            told = Cell(mean["value"], is_cost, mark=own)
            rows.append((measure, name(comparison, standing), told, *_against(row, is_baseline=standing.is_baseline)))
    lines.append(len(rows))
    for standing in shown:
        if (timed := standing.latency_ms) is not None:
            nothing = "baseline" if standing.is_baseline else "not tested"
            rows.append((TIME, name(comparison, standing), Cell(timed["p50_ms"], is_cost=True), "", "", "", nothing))
    return Table(_COLUMNS, rows, lacks=_LACKS, lines=lines[1:])


def name(comparison: Comparison, standing: Standing) -> str:
    return f"{comparison.standings.index(standing) + 1} {' '.join(standing.side.name.split())}"


def headline(comparison: Comparison) -> list[str]:
    """A line for each side but the baseline: what it is better by, what it is worse by."""
    lines = []
    for standing in comparison.standings:
        if standing.is_baseline:
            continue
        rows = [row for measure in comparison.measures if (row := comparison.row(standing, measure)) is not None]
        moved = [
            f"{verdict} by {', '.join(row['measure'] for row in rows if row['verdict'] == verdict)}"
            for verdict in ("better", "worse")
            if any(row["verdict"] == verdict for row in rows)
        ]
        is_same = bool(rows) and all(row["verdict"] == "same" for row in rows)
        alike = "the same as the baseline" if is_same else "cannot tell it from the baseline"
        alike = alike if standing.side.measures else "has no number"
        lines.append(f"{name(comparison, standing)}: {'; '.join(moved) or alike}{_lacking(comparison, standing)}")
    return lines


def _lacking(comparison: Comparison, standing: Standing) -> str:
    """That a side has no value of some of the questions, of which its verdict tells nothing."""
    lacking, judged = comparison.lacking(standing), comparison.judged
    of = f"{judged - lacking:,} of {judged:,} {comparison.unit}"
    return f", over {of}: it has no value of {lacking:,} ({lacking / judged:.0%})" if lacking else ""


def explained(comparison: Comparison) -> str:
    """How the table came about, in a line."""
    least, most = comparison.paired
    pairs = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return (
        f"{pairs} {comparison.unit} of {comparison.queries:,}, paired; best first by {comparison.by}; "
        f"{100 * comparison.confidence:g} % "
        "bootstrap intervals; p: permutation test, corrected over all rows (Holm); better, worse: p < "
        f"{comparison.alpha:g}"
    )


def incidents(comparison: Comparison) -> list[str]:
    """A line for each side of which something failed and was survived."""
    return [
        f"{name(comparison, standing)}: survived: {told}"
        for standing in comparison.standings
        if (told := standing.side.incidents)
    ]


def report(comparison: Comparison) -> dict[str, Any]:
    """Everything that was found, as plain data."""
    names = [standing.side.name for standing in comparison.standings]
    return {
        "kind": "comparison",
        "dataset": dict(comparison.baseline.side.summary["dataset"]),
        "baseline": comparison.baseline.side.name,
        "by": comparison.by,
        "queries": comparison.queries,
        "judged": comparison.judged,
        "alpha": comparison.alpha,
        "confidence": comparison.confidence,
        "sides": [_side(standing) for standing in comparison.standings],
        "rows": [{**row, "side": names[row["side"]]} for row in comparison.rows.drop("group").iter_rows(named=True)],
        "notes": list(comparison.notes),
    }


def markdown(comparison: Comparison, picture: str | None) -> str:
    """A table, and the picture.

    Args:
        picture: the file beside the page.
    """
    lines = [
        f"## {plain_markdown(comparison.title)}",
        "",
        *(f"- {plain_markdown(line)}" for line in headline(comparison)),
        "",
        *((f"**{plain_markdown(comparison.label)}**", "") if comparison.label else ()),
        table(comparison).markdown(),
        "",
        f"{plain_markdown(explained(comparison))}.",
        *("", *(f"- {plain_markdown(note)}" for note in (*incidents(comparison), *comparison.notes))),
        *(("", f"![{plain_markdown(comparison.by)} against cost]({picture})") if picture else ()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _against(row: Mapping[str, Any] | None, *, is_baseline: bool) -> Row:
    """Difference, interval, p and verdict."""
    if row is None:
        return "", "", "", "baseline" if is_baseline else "not shared"
    return *paired_cells(row), row["verdict"]


def _side(standing: Standing) -> dict[str, Any]:
    summary = standing.side.summary
    known = ("config_hash", "commit", "definitions")
    return {
        "name": standing.side.name,
        "folder": str(standing.side.folder.resolve()),
        "is_baseline": standing.is_baseline,
        "asked": len(standing.side.queries),
        **{key: summary.get(key) for key in known},
        "incidents": dict(summary.get("incidents") or {}),
        "measures": {measure: dict(mean) for measure, mean in standing.means.items()},
        "latency_ms": None if standing.latency_ms is None else dict(standing.latency_ms),
    }
