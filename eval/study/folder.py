"""A study on disk: every trial, what was picked and what that is worth, as tables, a page and plots."""

import json
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from optuna.trial import TrialState

from eval.dataset.dataset import generated_label
from eval.run import CONFIG, commit, write_frame, write_summary
from eval.study.queue import ERROR, STOPPED_AT
from eval.study.report import CONFIG_HASH, IMPORTANCE_FROM, SAME_AS, SECONDS, STATES, StudyReport, Worth
from eval.table import Column, Table, titled
from eval.tracking.entry import dataset_tags
from lcm.files import write_text

_FRONT_SHOWN = 20
_TRIALS_SHOWN, _MEASURES_SHOWN = 10, 8


def study_page(report: StudyReport, best: Sequence[str], plots: Sequence[str], found: Worth | None = None) -> str:
    """The study as Markdown; `study_parts` has the same by itself."""
    parts = study_parts(report, best, plots, found)
    return "\n\n".join(part.markdown() if isinstance(part, Table) else part for part in parts) + "\n"


def study_parts(
    report: StudyReport, best: Sequence[str] = (), plots: Sequence[str] = (), found: Worth | None = None
) -> Iterator[str | Table]:
    """Paragraphs of Markdown, and tables.

    Args:
        best: the overrides that make the picked configuration; none where they are told elsewhere.
        plots: files beside the page.
        found: what was picked against the default; None where that could not be measured, or is told elsewhere.
    """
    shares = ", ".join(f"{n} at {share} of the queries" for share, n in report.stopped_at().items())
    more = {"pruned": f" ({shares})"}
    told = ", ".join(f"{n} {name}{more.get(name, '')}" for name, n in report.counts().items() if n)
    label = generated_label(report.dataset)
    yield f"# Study {report.name}"
    yield f"{report.dataset['name']} ({report.dataset['protocol']}); {len(report.trials)} trials: {told}."
    if label:
        yield f"**{label[0].upper()}{label[1:]}.**"
    yield from _picked(report, best)
    if found is not None:
        yield from ("## Against the default", _listed(found.told()))
    yield from _validation(report)
    yield from _front(report)
    yield from _importances(report)
    yield from _trials(report)
    yield from (f"![{plot.removesuffix('.png')}]({plot})" for plot in plots)


def _picked(report: StudyReport, best: Sequence[str]) -> Iterator[str | Table]:
    yield f"## Picked: trial {report.picked.number}"
    yield _rule(report)
    values = zip(report.objectives, report.picked.values, strict=True)
    rows = [(f"{one.direction} {one.measure}", value) for one, value in values]
    yield Table(titled("objective", ("value",), digits=4), rows)
    set_to = [(key, _short(value)) for key, value in report.picked.assignment.items()]
    yield Table((Column("key", "key"), Column("value")), set_to)
    if best:
        yield f"```\n{shlex.join(['lcm', 'evaluate', *best])}\n```"


def _rule(report: StudyReport) -> str:
    """By what rule the trial was picked, in words."""
    first, *others = report.objectives
    if not others:
        return f"The best mean of {first.measure} over all queries."
    steps = [f"the best by {report.objectives[-1].measure}"]
    steps += [f"within {one.within:g} of the best by {one.measure}" for one in reversed(report.objectives[:-1])]
    return f"Of the Pareto front: {', of those '.join(steps)}."


def _validation(report: StudyReport) -> Iterator[str | Table]:
    found = report.validation
    measure = report.objectives[0].measure
    yield "## Cross-validated"
    if found is None:
        yield f"There is none: {_why_nothing_is_held_out(report)}."
        return
    rivals = "1 other is" if found.rivals == 1 else f"{found.rivals} others are"
    yield (
        f"Each fold in turn had no say: the trial that the others pick is judged by it. {measure} is then "
        f"**{found.estimate:.4f}** (standard deviation over {len(found.folds)} folds {found.spread:.4f}), where the "
        f"picked trial's own mean is {found.in_sample:.4f}: an optimism of {found.optimism:+.4f}. "
        f"{found.agreement} of {len(found.folds)} times the same trial was picked; {rivals} within "
        "one standard error of the best."
    )
    means = ("their mean", "here", f"trial {report.picked.number} here")
    columns = (*titled("held out", ("queries",)), Column("picked by the others"), *titled("", means, digits=4)[1:])
    rows = [
        (row.fold, row.queries, f"trial {row.picked}", row.training, row.value, row.chosen_trial_value)
        for row in found.folds
    ]
    yield Table(columns, rows)


def _why_nothing_is_held_out(report: StudyReport) -> str:
    measure = report.objectives[0].measure
    if len(report.folds) < 2:
        return "judged queries are of a single workspace"
    if report.objectives[0].is_time:
        return f"the first objective, {measure}, is a time, which is not known by folds"
    return f"{measure}, the first objective, judges queries of a single fold"


def _front(report: StudyReport) -> Iterator[str | Table]:
    if len(report.objectives) < 2:
        return
    yield "## Pareto front"
    shown = sorted(report.front, key=lambda trial: -report.objectives[0].sign * trial.values[0])[:_FRONT_SHOWN]
    if len(shown) < len(report.front):
        yield f"The first {len(shown)} of {len(report.front)}; `study.parquet` has all."
    columns = (*titled("trial", (one.measure for one in report.objectives), digits=4), Column("keys", "key"))
    rows = [
        (
            str(trial.number),
            *trial.values,
            ", ".join(f"{key}={_short(value)}" for key, value in trial.assignment.items()),
        )
        for trial in shown
    ]
    yield Table(columns, rows)


def _importances(report: StudyReport) -> Iterator[str | Table]:
    yield f"## What {report.objectives[0].measure} depends on (PED-ANOVA, shares)"
    if report.importances:
        columns = (Column("key", "key"), Column("share", "number"))
        yield Table(columns, list(report.importances.items()))
    else:
        yield f"It is not told: {_why_nothing_is_important(report)}."


def _why_nothing_is_important(report: StudyReport) -> str:
    different = sum(trial.same_as is None for trial in report.complete)
    if different < IMPORTANCE_FROM:
        return (
            f"{different} different configurations are complete; below {IMPORTANCE_FROM} the shares are mostly chance"
        )
    return "all trials are equally good"


def _trials(report: StudyReport) -> Iterator[str | Table]:
    """The best trials, by the measures that what is searched changes."""
    names = list(dict.fromkeys(name for told in report.told.values() for name in told))[:_MEASURES_SHOWN]
    if names:
        yield "## What the trials changed"
        best = sorted(report.complete, key=lambda trial: -report.objectives[0].sign * trial.values[0])[:_TRIALS_SHOWN]
        if len(best) < len(report.complete):
            yield f"The best {len(best)} of {len(report.complete)}; `study.parquet` has all."
        columns = (
            *titled("trial", (one.measure for one in report.objectives), digits=4),
            *(Column(name, "number") for name in names),
        )
        rows = [
            (str(trial.number), *trial.values, *(report.told.get(trial.number, {}).get(name) for name in names))
            for trial in best
        ]
        yield Table(columns, rows)
    if report.notes:
        yield _listed(report.notes)


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_SLICES = 12
"""Keys that are drawn, the most important first."""
_DPI = 110
_PANEL_INCHES = 3.2


def write_plots(folder: Path, study: Any, report: StudyReport) -> list[str]:
    """Draw what there is enough of to draw; returns the names of the files, in the order to look at them.

    history.png: the trials as they came. importance.png: what the first objective depends on, where that is told.
    slices.png: it against each key. pareto.png: two or three objectives against each other.
    """
    import matplotlib

    matplotlib.use("Agg")
    from optuna.visualization import matplotlib as drawn

    first = report.objectives[0]
    names = [one.measure for one in report.objectives]
    target: dict[str, Any] = {"target": lambda trial: trial.values[0], "target_name": first.measure}
    searched = dict.fromkeys(key for trial in report.complete for key in trial.assignment)
    keys = list(report.importances or searched)[:_SLICES]
    plots: dict[str, Callable[[], Any]] = {}
    if 2 <= len(names) <= 3:
        plots["pareto.png"] = lambda: drawn.plot_pareto_front(study, target_names=names)
    # Without a target, which a single objective needs none of, the best so far is drawn too.
    plots["history.png"] = lambda: drawn.plot_optimization_history(study, **(target if len(names) > 1 else {}))
    if report.importances:
        plots["importance.png"] = lambda: _bars(report)
    if len(report.complete) > 1:
        plots["slices.png"] = lambda: drawn.plot_slice(study, params=keys, **target)
    for name, draw in plots.items():
        _draw(folder / name, draw)
    return list(plots)


def _bars(report: StudyReport) -> Any:
    import matplotlib.pyplot as plt

    keys = list(report.importances)[:_SLICES][::-1]
    _, axes = plt.subplots(figsize=(7, 0.6 + 0.4 * len(keys)))
    axes.barh(keys, [report.importances[key] for key in keys])
    axes.set_xlabel(f"share of what {report.objectives[0].measure} depends on (PED-ANOVA)")
    return axes


def _draw(path: Path, draw: Callable[[], Any]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    from lcm.files import written_whole

    with warnings.catch_warnings():  # of axes without an extent, where few trials differ
        warnings.simplefilter("ignore", UserWarning)
        drawn = draw()
    axes = drawn if hasattr(drawn, "get_figure") else drawn.flat[0]
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    panels = len(getattr(drawn, "flat", ()))
    if panels > 1:
        figure.set_size_inches(_PANEL_INCHES * panels, 4)
    try:
        with written_whole(path) as file:
            figure.savefig(file, dpi=_DPI, bbox_inches="tight")
    finally:
        plt.close(figure)


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
