"""What the gate found, on disk: what a person, a build server and MLflow each want of it."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from eval.comparison.agreement import comparable
from eval.comparison.changed_query import ChangedQuery
from eval.measures.means import ALL
from eval.regression.gate import GatedComparison
from eval.regression.junit import junit
from eval.regression.markdown import markdown
from eval.run import CONFIG, Run, commit, read_table, write_frame, write_json, write_summary
from eval.shape import NUMBER, TEXT, keys, list_of, read_json
from eval.tracking.entry import dataset_tags, metric_name
from lcm.files import private, write_text

MARKDOWN, JUNIT, JSON, ROWS = "report.md", "report.xml", "report.json", "verdict.parquet"
_LOGGED = ("baseline", "candidate", "difference", "low", "high", "p_holm")

_SIDE = keys({"folder": TEXT, "name": TEXT})
_SHAPE = keys(
    {
        "baseline": _SIDE,
        "candidate": _SIDE,
        "gate": TEXT,
        "not_measured": list_of(TEXT),
        "not_known_to_agree": list_of(TEXT),
        "settings": keys({"alpha": NUMBER, "confidence": NUMBER}),
    },
    {"notes": list_of(TEXT)},
)


@private()
def write_regression(
    folder: Path, comparison: GatedComparison, settings: Mapping[str, Any], config_text: str, now: datetime
) -> dict[str, Any]:
    """Write every file of it and, last, its summary.

    Args:
        settings: how it was judged: flat, by key.
        now: when the command began.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, config_text)
    write_frame(folder / ROWS, comparison.rows)
    write_text(folder / MARKDOWN, markdown(comparison))
    write_text(folder / JUNIT, junit(comparison, now.isoformat(timespec="seconds").partition("+")[0]))
    write_json(folder / JSON, report(comparison, settings))
    return write_summary(folder, summary_of(comparison, settings), now.timestamp())


def report(comparison: GatedComparison, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was found, as plain data."""
    return {
        "gate": comparison.gate,
        "exit_code": comparison.exit_code,
        "dataset": dict(comparison.baseline.summary["dataset"]),
        "baseline": _side(comparison.baseline),
        "candidate": _side(comparison.candidate),
        "settings": dict(settings),
        "rows": comparison.rows.to_dicts(),
        "not_measured": list(comparison.left_out),
        "not_known_to_agree": list(comparison.unknown),
        "notes": list(comparison.notes),
        "worse_queries": [_query(query) for query in comparison.worse],
        "better_queries": [_query(query) for query in comparison.better],
    }


def read_regression(folder: Path) -> GatedComparison:
    """What the gate found, as its folder keeps it; without the queries that changed.

    Raises:
        LcmError: if a side is no longer where it was, or a file is missing or damaged.
    """
    told = read_json(folder / JSON, _SHAPE, "run `lcm regress` again")
    baseline, candidate = (
        comparable(Path(told[one]["folder"]), told[one]["name"]) for one in ("baseline", "candidate")
    )
    rows = read_table(folder / ROWS)
    return GatedComparison(
        baseline=baseline,
        candidate=candidate,
        rows=rows,
        gate=told["gate"],
        worse=(),
        better=(),
        left_out=tuple(told["not_measured"]),
        costs=frozenset(rows.filter("lower_is_better")["measure"]),
        unknown=tuple(told["not_known_to_agree"]),
        alpha=told["settings"]["alpha"],
        confidence=told["settings"]["confidence"],
        notes=tuple(told.get("notes", ())),
    )


def _query(query: ChangedQuery) -> dict[str, Any]:
    return asdict(query) | {"values": {name: list(pair) for name, pair in query.values.items()}}


def summary_of(comparison: GatedComparison, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What MLflow is told: each row's numbers as metrics, rows of a category under `category/`."""
    metrics = {
        f"{_prefix(row['group'])}{row['measure']}.{name}": row[name]
        for row in comparison.rows.iter_rows(named=True)
        for name in _LOGGED
        if row[name] is not None
    }
    metrics |= {
        name.replace(" ", "_"): float((comparison.rows[column] == name).sum())
        for column, names in (("gate", ("regressed", "cannot tell")), ("verdict", ("better", "worse")))
        for name in names
    }
    metrics["exit_code"] = float(comparison.exit_code)
    baseline, candidate = comparison.baseline, comparison.candidate
    return {
        "kind": "regression",
        "gate": comparison.gate,
        "exit_code": comparison.exit_code,
        "name": f"{candidate.name} against {baseline.name}",
        "dataset": dict(baseline.summary["dataset"]),
        "commit": commit(),
        "metrics": metrics,
        "params": {
            "baseline": baseline.name,
            "candidate": candidate.name,
            "dataset": baseline.summary["dataset"]["name"],
            **{metric_name(key): value for key, value in settings.items()},
        },
        "tags": {
            "gate": comparison.gate,
            **dataset_tags(baseline.summary["dataset"]),
            "baseline_config_hash": baseline.summary["config_hash"],
            "candidate_config_hash": candidate.summary["config_hash"],
        },
    }


def _prefix(group: str) -> str:
    return "" if group == ALL else f"category/{group}/"


def _side(side: Run) -> dict[str, Any]:
    known = ("config_hash", "commit", "definitions")
    times = {name: section for name, section in side.summary.get("timing", {}).items() if name != "seconds"}
    return {
        "name": side.name,
        "folder": str(side.folder.resolve()),
        **{key: side.summary.get(key) for key in known},
        **times,
    }
