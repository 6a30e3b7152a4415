"""A study on disk: every trial, what was picked, and what that is worth."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from optuna.trial import TrialState

from eval.run import CONFIG, commit, write_frame, write_summary
from eval.tracking.entry import dataset_tags
from eval.tuning.plots import write_plots
from eval.tuning.study_page import study_page
from eval.tuning.study_report import CONFIG_HASH, SAME_AS, SECONDS, STATES, StudyReport
from eval.tuning.trial_queue import ERROR, STOPPED_AT
from eval.tuning.worth import Worth
from lcm.files import write_text

TRIALS, FOLDS, BEST, PAGE = "study.parquet", "folds.parquet", "best.yaml", "study.md"


def write_study(
    folder: Path,
    report: StudyReport,
    study: Any,
    best: Sequence[str],
    config_text: str,
    settings: Mapping[str, Any],
    found: Worth | None,
) -> dict[str, Any]:
    """Write every file of a study and, last, its summary.

    Args:
        study: Optuna's, for its plots.
        best: the overrides that make the picked configuration, from the defaults on.
        config_text: that configuration.
        settings: of the study, flat; told as parameters.
        found: what was picked against the default; None where that could not be measured.
    """
    write_frame(folder / TRIALS, trials_table(report))
    write_frame(folder / FOLDS, folds_table(report))
    write_text(folder / CONFIG, config_text)
    write_text(folder / BEST, _best(report, best))
    plots = write_plots(folder, study, report)
    write_text(folder / PAGE, study_page(report, best, plots, found))
    began = [trial.datetime_start.timestamp() for trial in report.trials if trial.datetime_start is not None]
    return write_summary(folder, summary_of(report, settings, found), min(began, default=None))


def trials_table(report: StudyReport) -> pl.DataFrame:
    """A row for each trial: number, state, a column for each objective and each key (null where it was not there),
    how it stands among the others, when it ran, why it failed, at which share of the queries it was stopped, and the
    measures that what is searched changes."""
    keys = list(dict.fromkeys(key for trial in report.trials for key in trial.params))
    front = {trial.number for trial in report.front}
    rows = []
    for trial in report.trials:
        # Of a pruned trial Optuna has what some queries gave, which compares with nothing here.
        values = trial.values if trial.state == TrialState.COMPLETE else [None] * len(report.objectives)
        rows.append(
            {
                "number": trial.number,
                "state": STATES[trial.state],
                **{one.measure: value for one, value in zip(report.objectives, values, strict=True)},
                **{key: trial.params.get(key) for key in keys},
                "is_best": trial.number == report.picked.number,
                "is_on_front": trial.number in front,
                CONFIG_HASH: trial.user_attrs.get(CONFIG_HASH),
                SAME_AS: trial.user_attrs.get(SAME_AS),
                SECONDS: trial.user_attrs.get(SECONDS),
                ERROR: trial.user_attrs.get(ERROR),
                STOPPED_AT: trial.user_attrs.get(STOPPED_AT),
            }
        )
    named = set(keys).union(*rows)
    measured = list(dict.fromkeys(name for told in report.told.values() for name in told))
    for row in rows:
        told = report.told.get(row["number"], {})
        row |= {name: told.get(name) for name in measured if name not in named}
    mixed = [key for key in keys if len({_kind(row[key]) for row in rows if row[key] is not None}) > 1]
    for row in rows:
        row |= {key: None if row[key] is None else json.dumps(row[key]) for key in mixed}
    known = {SAME_AS: pl.Int64, SECONDS: pl.Float64} | dict.fromkeys((ERROR, CONFIG_HASH, STOPPED_AT), pl.String)
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=known)


def folds_table(report: StudyReport) -> pl.DataFrame:
    """A row for each complete trial, measure and fold: number, measure, fold, value (null: nothing judged), n."""
    rows = [
        (trial.number, measure, fold, total / n if n else None, int(n))
        for trial in report.complete
        for measure, by_fold in trial.sums.items()
        for fold, (total, n) in by_fold.items()
    ]
    schema = {"number": pl.Int64, "measure": pl.String, "fold": pl.String, "value": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def summary_of(report: StudyReport, settings: Mapping[str, Any], found: Worth | None) -> dict[str, Any]:
    """What MLflow is told."""
    metrics = {f"trials/{name}": float(n) for name, n in report.counts().items()}
    metrics |= {f"trials/stopped at {share.replace('/', ' in ')}": float(n) for share, n in report.stopped_at().items()}
    metrics |= {f"best/{name}": value for name, value in _tops(report, found).items()}
    validation = report.validation
    if validation is not None:
        measure = report.objectives[0].measure
        metrics |= {
            f"cross_validated/{measure}": validation.estimate,
            f"cross_validated/{measure}.spread": validation.spread,
            f"cross_validated/{measure}.optimism": validation.optimism,
            "cross_validated/agreement": validation.agreement / len(validation.folds),
            "cross_validated/rivals": float(validation.rivals),
        }
    metrics |= {f"importance/{key}": float(value) for key, value in report.importances.items()}
    return {
        "kind": "study",
        "name": report.name,
        "title": f"{report.dataset['name']} · study {report.name}",
        "dataset": dict(report.dataset),
        "commit": commit(),
        "metrics": metrics,
        "params": {
            "dataset": report.dataset["name"],
            **settings,
            **{f"best.{key}": value for key, value in report.picked.assignment.items()},
        },
        "tags": {
            **dataset_tags(report.dataset),
            "best_trial": str(report.picked.number),
            "objectives": ", ".join(f"{one.direction} {one.measure}" for one in report.objectives),
            **({"equal_trials": " ".join(report.notes)} if report.notes else {}),
            **({"verdict": str(found.verdict)} if found else {}),
        },
        "notes": [] if found is None else found.told(),
        "best": found and found.record(),
    }


def _tops(report: StudyReport, found: Worth | None) -> dict[str, float]:
    """What the pick reached; by what it was held against the default and is not better, what the default reached."""
    tops = {one.measure: value for one, value in zip(report.objectives, report.picked.values, strict=True)}
    if found is None or found.verdict == "better":
        return tops
    return tops | {row["measure"]: row["baseline"] for row in found.picked}


def _best(report: StudyReport, best: Sequence[str]) -> str:
    lines = [
        f"# The overrides of trial {report.picked.number}, which study {report.name} picked: `lcm evaluate` takes them."
    ]
    return "\n".join([*lines, *(f"- {json.dumps(override, ensure_ascii=False)}" for override in best)]) + "\n"


def _kind(value: Any) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
