"""What a comparison found: as a table, plain data, Markdown and a picture, and the folder that holds them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.comparison.comparison import PRICE, Comparison, Standing
from eval.comparison.pairing import comparable
from eval.run import commit, read_table, write_frame, write_json, write_summary
from eval.shape import FLAG, MEASURES, NUMBER, TEXT, keys, list_of, read_json
from eval.table import Cell, Column, Row, Table, paired_cells, plain_markdown
from eval.tracking.entry import dataset_tags
from lcm.errors import LcmError
from lcm.files import private, write_text, written_whole

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
_LACKS = (("p (Holm)",), ("p (Holm)", "mean"), ("difference", "interval"))
"""On a narrow terminal the interval or p stays; a difference and its interval go together, for beside a mean an
interval alone would be read as the mean's."""


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
    for cost in (TIME, *([PRICE] if comparison.has_price else [])):
        for standing in shown:
            value = (standing.side.latency_ms or {}).get("p50_ms") if cost == TIME else standing.side.embedding_price
            if value is not None:
                nothing = "baseline" if standing.is_baseline else "not tested"
                paid = Cell(value, is_cost=True) if cost == TIME else f"{value:.4g}"
                rows.append((cost, name(comparison, standing), paid, "", "", "", nothing))
    return Table(_COLUMNS, rows, lacks=_LACKS, lines=lines[1:])


def name(comparison: Comparison, standing: Standing) -> str:
    return f"{comparison.standings.index(standing) + 1} {' '.join(standing.side.name.split())}"


def named(comparison: Comparison, standing: Standing) -> str:
    return f"{name(comparison, standing)}{' (baseline)' if standing.is_baseline else ''}"


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
    """A table, and the picture."""
    told, notes = (
        "\n".join(f"- {plain_markdown(line)}" for line in lines)
        for lines in (headline(comparison), (*incidents(comparison), *comparison.notes))
    )
    paragraphs = (
        f"## {plain_markdown(comparison.title)}",
        told,
        f"**{plain_markdown(comparison.label)}**" if comparison.label else "",
        table(comparison).markdown(),
        f"{plain_markdown(explained(comparison))}.",
        notes,
        f"![{plain_markdown(comparison.by)} against cost]({picture})" if picture else "",
    )
    return "\n\n".join(filter(None, paragraphs)) + "\n"


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
        "latency_ms": None if standing.side.latency_ms is None else dict(standing.side.latency_ms),
        "embedding_price": standing.side.embedding_price,
    }


_LONGEST_NAME = 40
_MOST_NAMED = 12


def draw(comparison: Comparison, path: Path) -> bool:
    """Draw each side at its quality, with the interval of its mean, over its cost; best first in the legend.

    Returns:
        Whether there is a cost to draw it over; nothing is drawn otherwise.
    """
    panels = comparison.paid()
    if not panels:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # here, because importing it takes a second
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(panels), 5), layout="constrained")
    FigureCanvasAgg(figure)
    of_panel = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (cost, points) in zip(of_panel, panels.items(), strict=True):
        for i, at, value, low, high in points:
            ends = None if low is None or high is None else [(value - low,), (high - value,)]
            standing = comparison.standings[i]
            marker, label = "s" if standing.is_baseline else "o", _plain(_short(named(comparison, standing)))
            axes.errorbar(at, value, yerr=ends, marker=marker, capsize=3, linestyle="none", label=label)
            axes.annotate(str(i + 1), (at, value), textcoords="offset points", xytext=(6, 4), fontsize="small")
        axes.set(xlabel=f"{cost}: less is better", ylabel=comparison.by)
        axes.grid(visible=True, alpha=0.3)
    handles, names = of_panel[0].get_legend_handles_labels()
    figure.legend(handles[:_MOST_NAMED], names[:_MOST_NAMED], loc="outside lower center", fontsize="small", ncols=1)
    if comparison.label:
        figure.suptitle(_plain(comparison.label), fontsize="small")
    with written_whole(path) as file:
        figure.savefig(file, dpi=120)
    return True


def _short(name: str) -> str:
    """The number of a side, and as much of the end of its name as there is room for."""
    number, _, of = name.partition(" ")
    return name if len(of) <= _LONGEST_NAME else f"{number} ...{of[-_LONGEST_NAME + 3 :]}"


def _plain(text: str) -> str:
    """Text that matplotlib does not read as mathematics, and on one line."""
    return " ".join(text.split()).replace("$", r"\$")


MARKDOWN, JSON, ROWS, PICTURE = "compare.md", "compare.json", "compare.parquet", "compare.png"
_LOGGED = ("candidate", "difference", "low", "high", "p_holm")
_LONGEST_TAG = 500
_SIDE = keys({"folder": TEXT, "name": TEXT, "is_baseline": FLAG, "measures": MEASURES})
_SHAPE = keys(
    {
        "sides": list_of(_SIDE),
        "by": TEXT,
        "queries": NUMBER,
        "notes": list_of(TEXT),
        "alpha": NUMBER,
        "confidence": NUMBER,
    }
)
_AGAIN = "run `lcm compare` again"


@private()
def write_comparison(folder: Path, comparison: Comparison, began_unix_s: float | None = None) -> dict[str, Any]:
    """Write every file of a comparison and, last, its summary; returns what it found as plain data."""
    folder.mkdir(parents=True, exist_ok=True)
    is_drawn = draw(comparison, folder / PICTURE)
    write_frame(folder / ROWS, comparison.rows)
    write_text(folder / MARKDOWN, markdown(comparison, PICTURE if is_drawn else None))
    told = report(comparison)
    write_json(folder / JSON, told)
    write_summary(folder, _summary(comparison), began_unix_s)
    return told


def read_comparison(folder: Path) -> Comparison:
    """A comparison as its folder keeps it.

    Raises:
        LcmError: if a side is no longer where it was, or a file is missing or damaged.
    """
    told = read_json(folder / JSON, _SHAPE, _AGAIN)
    if sum(one["is_baseline"] for one in told["sides"]) != 1:
        raise LcmError(f"{folder / JSON} is damaged (one of its sides must be the baseline); {_AGAIN}")
    rows = read_table(folder / ROWS)
    standings = tuple(
        Standing(comparable(Path(one["folder"]), one["name"]), one["is_baseline"], one["measures"])
        for one in told["sides"]
    )
    return Comparison(
        standings=standings,
        by=told["by"],
        measures=tuple(next(iter(standings)).means),
        rows=rows,
        queries=told["queries"],
        notes=tuple(told["notes"]),
        alpha=told["alpha"],
        confidence=told["confidence"],
    )


def _summary(comparison: Comparison) -> dict[str, Any]:
    """What MLflow is told: each row's numbers as metrics, below the place of its side."""
    baseline = comparison.baseline.side
    names = [standing.side.name for standing in comparison.standings]
    return {
        "kind": "comparison",
        "name": comparison.title,
        "dataset": dict(baseline.summary["dataset"]),
        "commit": commit(),
        "metrics": {
            f"{row['side'] + 1}/{row['measure']}.{name}": row[name]
            for row in comparison.rows.iter_rows(named=True)
            for name in _LOGGED
        },
        "params": {"baseline": baseline.name, "by": comparison.by, "dataset": baseline.summary["dataset"]["name"]},
        "tags": {
            **{f"side/{i}": name[:_LONGEST_TAG] for i, name in enumerate(names, 1)},
            **dataset_tags(baseline.summary["dataset"]),
        },
        "notes": list(comparison.notes),
    }
