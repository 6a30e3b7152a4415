"""A comparison on disk: what a person, a program and MLflow each want of it."""

from pathlib import Path
from typing import Any

from eval.comparison.agreement import comparable
from eval.comparison.comparison import Comparison, Standing
from eval.comparison.comparison_report import markdown, report
from eval.comparison.picture import draw
from eval.run import commit, read_table, write_frame, write_json, write_summary
from eval.shape import FLAG, MEASURES, NUMBER, TEXT, keys, list_of, read_json
from eval.tracking.entry import dataset_tags
from lcm.errors import LcmError
from lcm.files import private, write_text

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
    """Write every file of a comparison and, last, its summary; returns what it found as plain data.

    Args:
        began_unix_s: when the command began; None: nobody needs to know.
    """
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
