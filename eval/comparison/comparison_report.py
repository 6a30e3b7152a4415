"""What a comparison found, as plain data and as Markdown."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eval.comparison.comparison import Comparison, Standing
from eval.comparison.wording import interval, number, probability, signed

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~])")
HEADINGS = ("measure", "side", "mean", "difference", "interval", "p (Holm)", "verdict")
TIME = "ms, median"
"""What stands for a measure in the rows of latency: it is of other queries than the rest, so nothing is tested."""


def cells(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """The table, a row for each measure and side: best first within a measure, the one that decides first."""
    for measure in comparison.measures:
        is_cost = measure in comparison.costs
        for standing in comparison.standings:
            mean = standing.means.get(measure)
            if mean is None:
                continue
            row = comparison.row(standing, measure)
            told = number(mean["value"], is_cost) + ("" if mean["n"] == comparison.judged else f" n={mean['n']:g}")
            yield (measure, name(comparison, standing), told, *_against(row, is_baseline=standing.is_baseline))
    for standing in comparison.standings:
        if (timed := standing.latency_ms) is not None:
            nothing = "baseline" if standing.is_baseline else "not tested"
            yield (TIME, name(comparison, standing), f"{timed['p50_ms']:.1f}", "", "", "", nothing)


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
        f"## {_text(comparison.title)}",
        "",
        *(f"- {_text(line)}" for line in headline(comparison)),
        "",
        *((f"**{_text(comparison.label)}**", "") if comparison.label else ()),
        f"| {' | '.join(HEADINGS)} |",
        "|---|---|---:|---:|---|---:|---|",
        *(f"| {' | '.join(map(_text, row))} |" for row in cells(comparison)),
        "",
        f"{_text(explained(comparison))}.",
        *("", *(f"- {_text(note)}" for note in (*incidents(comparison), *comparison.notes))),
        *(("", f"![{_text(comparison.by)} against cost]({picture})") if picture else ()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _against(row: Mapping[str, Any] | None, *, is_baseline: bool) -> tuple[str, str, str, str]:
    """Difference, interval, p and verdict."""
    if row is None:
        return "", "", "", "baseline" if is_baseline else "not shared"
    difference = signed(row["difference"], row["lower_is_better"])
    return difference, interval(row), probability(row["p_holm"]), row["verdict"]


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


def _text(text: str) -> str:
    """Text on one line, with nothing that Markdown reads."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))
