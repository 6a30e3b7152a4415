"""The page of a sweep (its points side by side, what the best gains beyond chance, what each setting does) and that of
a study (the trial that was picked, what it is worth on what had no say, all trials)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from eval.dataset.card import Card
from eval.report.figure import Interval, intervals, lines
from eval.report.page import Facts, Notes, Part, ReportPage, Section
from eval.report.run_page import configuration, dataset_section, survived
from eval.run import read_summary, read_table
from eval.study.gain import next_commands, paired_table
from eval.study.results import (
    HAYSTACK,
    PointResult,
    drawn,
    generated_labels,
    is_cost,
    numbers,
    points_table,
    repeated_notes,
)
from eval.table import Cell, Table, sentence, titled

_MOST_TRIALS = 50
_BESIDE = ("number", "state", "is_best", "is_on_front", "config_hash", "same_as", "seconds", "error")


def study_page(folder: Path) -> ReportPage:
    """A page without its explorer, of what the folder holds."""
    summary = read_summary(folder)
    trials = read_table(folder / "study.parquet")
    objectives = [one.split(" ", 1) for one in summary["tags"]["objectives"].split(", ")]
    best = trials.filter(pl.col("is_best")).row(0, named=True)
    params, metrics, measure = summary["params"], summary["metrics"], objectives[0][1]
    assignment = {key.removeprefix("best."): value for key, value in params.items() if key.startswith("best.")}
    reached = [(f"{direction} {name}", f"{best[name]:.4f}") for direction, name in objectives]
    return ReportPage(
        kind="study",
        title=f"{summary['name']}: {len(trials)} trials on {params['dataset']}",
        headline=_headline(measure, best, summary),
        sections=[
            Section("picked", f"Picked: trial {best['number']}", [Facts([*reached, *assignment.items()])]),
            _validation(metrics, measure),
            _importance(metrics, measure),
            _progress(trials, objectives[0]),
            _settings(trials, measure, list(assignment)),
            _trials(trials, objectives, list(assignment)),
            survived({**summary, "notes": ()}),
            configuration(folder),
        ],
    )


def _headline(measure: str, best: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """Lines on the picked trial and its difference to the default, as the terminal says them."""
    estimate = summary["metrics"].get(f"cross_validated/{measure}")
    worth = [] if estimate is None else [f"On conversations that had no say in the choice it is worth {estimate:.4f}."]
    counts = (f"{n:g} {name}" for name, n in _below("trials/", summary["metrics"]).items() if n)
    return [
        f"Trial {best['number']} was picked: {measure} {best[measure]:.4f}.",
        *worth,
        *(f"{sentence(line)}." for line in summary.get("notes", ())),
        f"Trials: {', '.join(counts)}.",
    ]


def _below(prefix: str, metrics: Mapping[str, float]) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}


def _validation(metrics: Mapping[str, float], measure: str) -> Section:
    whole = f"cross_validated/{measure}"
    pairs = (
        []
        if whole not in metrics
        else [
            (f"{measure} where each fold in turn had no say", f"{metrics[whole]:.4f}"),
            ("standard deviation over folds", f"{metrics[f'{whole}.spread']:.4f}"),
            ("optimism of the trial's own mean", f"{metrics[f'{whole}.optimism']:+.4f}"),
            ("folds that pick the same trial", f"{metrics['cross_validated/agreement']:.0%}"),
            ("trials within a standard error of the best", f"{metrics['cross_validated/rivals']:g}"),
        ]
    )
    return Section("validation", "Cross-validated", [Facts(pairs)] if pairs else [])


def _importance(metrics: Mapping[str, float], measure: str) -> Section:
    shares = sorted(_below("importance/", metrics).items(), key=lambda item: -item[1])
    figure = intervals([Interval(*one) for one in shares], "Shares by PED-ANOVA")
    return Section("importance", f"What {measure} depends on", [figure] if shares else [])


def _progress(trials: pl.DataFrame, objective: Sequence[str]) -> Section:
    direction, measure = objective
    told = trials.select("number", measure).drop_nulls(measure).sort("number")
    best = told[measure].cum_max() if direction == "maximize" else told[measure].cum_min()
    series = {"trial": list(told.iter_rows()), "best so far": list(zip(told["number"], best, strict=True))}
    figure = lines(series, f"{measure}, trial after trial", "trial", measure, loose=("trial",))
    return Section("progress", "How the search went", [figure] if len(told) > 1 else [])


def _settings(trials: pl.DataFrame, measure: str, keys: Sequence[str]) -> Section:
    numeric = (key for key in keys if key in trials.columns and trials[key].dtype.is_numeric())
    points = {
        key: trials.select(pl.col(key, measure).cast(pl.Float64)).drop_nulls().sort(key).rows()
        for key in numeric
        if trials[key].n_unique() > 2
    }
    parts = [lines({"trials": of}, f"{measure} by {key}", key, measure, ("trials",)) for key, of in points.items()]
    return Section("settings", "What the settings do", parts)


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
    is_cut = len(shown) < len(trials)
    caption = f"The best {len(shown)} of {len(trials)} trials" if is_cut else "All trials, the best first"
    return Section("trials", "The trials", [Table(titled("trial", names), rows, caption)])


def _written(value: Any) -> str | None:
    return None if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


_MOST_MEASURES = 9
_MOST_LINES = 8
_DRAWN = {"query": "judged questions", "conversation": "conversations"}


def sweep_page(
    folder: Path, results: Sequence[PointResult], measures: Sequence[str], card: Card | None = None
) -> ReportPage:
    """A page without its explorer."""
    summary = read_summary(folder)
    paired = read_table(folder / "paired.parquet")
    finished = sum(result.summary is not None for result in results)
    best = summary.get("best")
    failed = [f"point {i}, {one.label}: {one.error}" for i, one in enumerate(results) if one.error is not None]
    return ReportPage(
        kind="sweep",
        title=f"{folder.resolve().name}: {finished} of {len(results)} points",
        headline=_sweep_headline(folder, summary),
        sections=[
            _points(results, list(measures)[:_MOST_MEASURES], best),
            _gains(paired, best, results),
            _curves(results, measures),
            Section("failures", "What failed", [Notes(failed)] if failed else []),
            _datasets(results, card),
            survived(summary | {"notes": [*repeated_notes(results), *summary.get("notes", ())]}),
        ],
        label=generated_labels(results),
    )


def _sweep_headline(folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """What the sweep came to, in the words of the terminal, and what can be done with it next."""
    best = summary.get("best")
    if best is None:
        return ["No point is best: none finished, or all are equal."]
    told = best.get("told") or summary["tags"]["best_point"]
    is_better = best.get("verdict") == "better"
    commands = zip(("Next", "Or"), next_commands(folder, is_better=is_better), strict=False)
    its_folder = [f"Its folder: {best['folder']}."] if is_better else []
    return [f"{sentence(told)}.", *its_folder, *(f"{word}: {command}" for word, command in commands)]


def _points(results: Sequence[PointResult], measures: Sequence[str], best: Mapping[str, Any] | None) -> Section:
    stars = {} if best is None else best.get("stars", {})
    table = points_table(results, measures, stars)
    rows = []
    for result, (label, *others) in zip(results, table.rows, strict=True):
        is_best = best is not None and best.get("verdict") == "better" and result.name == best["folder"]
        is_default = best is not None and best["is_default"] and result.name == best["baseline"]
        told = label._replace(tone="own" if is_best else "", note="the default" if is_default else "")
        rows.append((told, *others))
    starred = "; * is the best, and significantly better than the baseline" if stars else ""
    caption = f"Means over {_DRAWN[drawn(results)]}{starred}"
    return Section("points", "The points", [replace(table, rows=rows, caption=caption)])


def _gains(paired: pl.DataFrame, best: Mapping[str, Any] | None, results: Sequence[PointResult]) -> Section:
    if paired.is_empty() or best is None:
        return Section("gains", "", [])
    label = next((one.label for one in results if one.name == best["baseline"]), "")
    baseline = "the default" if best["is_default"] else label
    shown = [
        Interval(f"{row['point']} {row['label']}", row["difference"], row["low"], row["high"])
        for row in paired.iter_rows(named=True)
    ]
    figure = intervals(shown[:30], f"{paired['measure'][0]}: each point against {baseline}", zero=0.0)
    word = "question" if drawn(results) == "query" else "conversation"
    caption = f"Paired by {word}; the intervals hold for all points together, p is corrected over all of them (Holm)"
    table = replace(paired_table(paired, baseline), caption=caption)
    return Section("gains", "What they gain beyond chance", [figure, table])


def _curves(results: Sequence[PointResult], measures: Sequence[str]) -> Section:
    """Of each swept number a figure: a line for each setting of the other keys."""
    finished = [result for result in results if result.summary is not None]
    quality = next((name for name in measures if not is_cost(results, name)), None)
    swept = list(dict.fromkeys(key for result in finished for key in result.settings))
    parts: list[Part] = []
    for key in swept if quality is not None else ():
        values = numbers([result.settings.get(key) for result in finished])
        if values is None or len(set(values)) < 2:
            continue
        if key == HAYSTACK:
            values = [float(result.messages_a_query or 0) for result in finished]
        series: dict[str, list[tuple[float, float]]] = {}
        for value, result in zip(values, finished, strict=True):
            others = " ".join(f"{other}={result.settings.get(other)}" for other in swept if other != key)
            y = result.value(quality or "")
            if y is not None:
                series.setdefault(others or str(quality), []).append((value, y))
        shown = {name: sorted(line) for name, line in list(series.items())[:_MOST_LINES]}
        words = f"{quality} by {'messages that a question sees' if key == HAYSTACK else key}"
        parts.append(lines(shown, words, key, str(quality)))
    return Section("settings", "What the settings do", parts)


def _datasets(results: Sequence[PointResult], card: Card | None) -> Section:
    """What the points were asked: one dataset mostly; of a sweep over datasets, each."""
    asked: dict[str, Mapping[str, Any]] = {}
    for result in results:
        if result.summary is not None:
            asked.setdefault(result.summary["dataset"]["digest"], result.summary)
    sections = [dataset_section(one, card if len(asked) == 1 else None) for one in asked.values()]
    return Section("dataset", "What they were asked", [part for one in sections for part in one.parts])
