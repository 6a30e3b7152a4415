"""The page of a study: the trial that was picked, what it is worth on what had no say, and all trials."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.report.figure import Interval, intervals, lines
from eval.report.parts import Facts, Figure, Part, ReportPage, Section
from eval.report.run_page import configuration, survived
from eval.run import read_summary, read_table
from eval.table import Cell, Table, sentence, titled

_MOST_TRIALS = 50
_BESIDE = ("number", "state", "is_best", "is_on_front", "config_hash", "same_as", "seconds", "error")


def study_page(folder: Path) -> ReportPage:
    """A page without its explorer, of what the folder holds."""
    summary = read_summary(folder)
    trials = read_table(folder / "study.parquet")
    objectives = [one.split(" ", 1) for one in summary["tags"]["objectives"].split(", ")]
    best = trials.filter(pl.col("is_best")).row(0, named=True)
    params, metrics = summary["params"], summary["metrics"]
    assignment = {key.removeprefix("best."): value for key, value in params.items() if key.startswith("best.")}
    found = [
        Section(
            "picked", f"Picked: trial {best['number']}", [Facts([*_objectives(objectives, best), *assignment.items()])]
        ),
        _validation(metrics, objectives[0][1]),
        _importance(metrics, objectives[0][1]),
        _progress(trials, objectives[0]),
        _settings(trials, objectives[0][1], list(assignment)),
        _trials(trials, objectives, list(assignment)),
        survived({**summary, "notes": ()}),
        configuration(folder),
    ]
    return ReportPage(
        kind="study",
        title=f"{summary['name']}: {len(trials)} trials on {params['dataset']}",
        headline=_headline(objectives, best, summary),
        sections=[section for section in found if section is not None],
    )


def _headline(objectives: Sequence[Sequence[str]], best: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """Lines on the picked trial and its difference to the default, as the terminal says them."""
    measure, metrics = objectives[0][1], summary["metrics"]
    lines_told = [f"Trial {best['number']} was picked: {measure} {best[measure]:.4f}."]
    estimate = metrics.get(f"cross_validated/{measure}")
    if estimate is not None:
        lines_told.append(f"On conversations that had no say in the choice it is worth {estimate:.4f}.")
    told = ", ".join(
        f"{n:g} {name.removeprefix('trials/')}" for name, n in metrics.items() if name.startswith("trials/") and n
    )
    beside = [f"{sentence(line)}." for line in summary.get("notes", ())]
    return [*lines_told, *beside, f"Trials: {told}."]


def _objectives(objectives: Sequence[Sequence[str]], best: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(f"{direction} {measure}", f"{best[measure]:.4f}") for direction, measure in objectives]


def _validation(metrics: Mapping[str, float], measure: str) -> Section | None:
    whole = f"cross_validated/{measure}"
    if whole not in metrics:
        return None
    pairs = [
        (f"{measure} where each fold in turn had no say", f"{metrics[whole]:.4f}"),
        ("standard deviation over folds", f"{metrics[f'{whole}.spread']:.4f}"),
        ("optimism of the trial's own mean", f"{metrics[f'{whole}.optimism']:+.4f}"),
        ("folds that pick the same trial", f"{metrics['cross_validated/agreement']:.0%}"),
        ("trials within a standard error of the best", f"{metrics['cross_validated/rivals']:g}"),
    ]
    return Section("validation", "Cross-validated", [Facts(pairs)])


def _importance(metrics: Mapping[str, float], measure: str) -> Section | None:
    shares = {
        name.removeprefix("importance/"): value for name, value in metrics.items() if name.startswith("importance/")
    }
    if not shares:
        return None
    rows = [Interval(key, value) for key, value in sorted(shares.items(), key=lambda item: -item[1])]
    return Section(
        "importance",
        f"What {measure} depends on",
        [Figure("Shares by PED-ANOVA", intervals(rows, "importance of each key"))],
    )


def _progress(trials: pl.DataFrame, objective: Sequence[str]) -> Section | None:
    direction, measure = objective
    told = trials.filter(pl.col(measure).is_not_null()).select("number", measure).sort("number")
    if len(told) < 2:
        return None
    best = told[measure].cum_max() if direction == "maximize" else told[measure].cum_min()
    series = {"trial": list(told.iter_rows()), "best so far": list(zip(told["number"], best, strict=True))}
    figure = Figure(
        f"{measure}, trial after trial", lines(series, f"{measure} by trial", "trial", measure, loose=("trial",))
    )
    return Section("progress", "How the search went", [figure])


def _settings(trials: pl.DataFrame, measure: str, keys: Sequence[str]) -> Section | None:
    parts: list[Part] = []
    for key in keys:
        if key in trials.columns and trials[key].dtype.is_numeric() and trials[key].n_unique() > 2:
            told = (
                trials.filter(pl.col(measure).is_not_null() & pl.col(key).is_not_null()).select(key, measure).sort(key)
            )
            points = [(float(x), float(y)) for x, y in told.iter_rows()]
            parts.append(
                Figure(
                    f"{measure} by {key}",
                    lines({"trials": points}, f"{measure} by {key}", key, measure, loose=("trials",)),
                )
            )
    return Section("settings", "What the settings do", parts) if parts else None


def _trials(trials: pl.DataFrame, objectives: Sequence[Sequence[str]], keys: Sequence[str]) -> Section:
    direction, measure = objectives[0]
    shown = trials.sort(measure, descending=direction == "maximize", nulls_last=True).head(_MOST_TRIALS)
    measures = [one for _, one in objectives]
    others = [name for name in trials.columns if name not in (*_BESIDE, *measures, *keys)]
    names = [*measures, *(key for key in keys if key in trials.columns), *others]
    rows = [
        (
            Cell(f"{row['number']} {row['state']}", tone="own" if row["is_best"] else ""),
            *(_written(row[name]) for name in names),
        )
        for row in shown.iter_rows(named=True)
    ]
    best = (
        f"The best {len(shown)} of {len(trials)} trials" if len(shown) < len(trials) else "All trials, the best first"
    )
    return Section("trials", "The trials", [Table(titled("trial", names), rows, best)])


def _written(value: Any) -> str | None:
    return None if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
