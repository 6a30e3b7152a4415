"""A study as a page to read."""

import shlex
from collections.abc import Iterator, Sequence

from eval.dataset.dataset import generated_label
from eval.tuning.importance import IMPORTANCE_FROM
from eval.tuning.study_report import StudyReport
from eval.tuning.worth import Worth

_FRONT_SHOWN = 20
_TRIALS_SHOWN, _MEASURES_SHOWN = 10, 8


def study_page(report: StudyReport, best: Sequence[str], plots: Sequence[str], found: Worth | None = None) -> str:
    """Markdown.

    Args:
        best: the overrides that make the picked configuration; none where they are told elsewhere.
        plots: files beside the page.
        found: what was picked against the default; None where that could not be measured, or is told elsewhere.
    """
    shares = ", ".join(f"{n} at {share} of the queries" for share, n in report.stopped_at().items())
    more = {"pruned": f" ({shares})"}
    told = ", ".join(f"{n} {name}{more.get(name, '')}" for name, n in report.counts().items() if n)
    label = generated_label(report.dataset)
    lines = [
        f"# Study {report.name}",
        "",
        f"{report.dataset['name']} ({report.dataset['protocol']}); {len(report.trials)} trials: {told}.",
        "",
        *((f"**{label[0].upper()}{label[1:]}.**", "") if label else ()),
        *_picked(report, best),
        *_worth(found),
        *_validation(report),
        *_front(report),
        *_importances(report),
        *_trials(report),
    ]
    lines += [line for plot in plots for line in (f"![{plot.removesuffix('.png')}]({plot})", "")]
    return "\n".join(lines).rstrip() + "\n"


def _picked(report: StudyReport, best: Sequence[str]) -> Iterator[str]:
    yield f"## Picked: trial {report.picked.number}"
    yield ""
    yield _rule(report)
    yield ""
    yield from _table(
        ("objective", "value"),
        [
            (f"{one.direction} {one.measure}", f"{value:.4f}")
            for one, value in zip(report.objectives, report.picked.values, strict=True)
        ],
    )
    yield from _table(
        ("key", "value"), [(f"`{key}`", _short(value)) for key, value in report.picked.assignment.items()]
    )
    if best:
        yield from ("```", shlex.join(["lcm", "evaluate", *best]), "```", "")


def _worth(found: Worth | None) -> Iterator[str]:
    if found is not None:
        yield from ("## Against the default", "", *(f"- {line}" for line in found.told()), "")


def _rule(report: StudyReport) -> str:
    """By what rule the trial was picked, in words."""
    first, *others = report.objectives
    if not others:
        return f"The best mean of {first.measure} over all queries."
    steps = [f"the best by {report.objectives[-1].measure}"]
    steps += [f"within {one.within:g} of the best by {one.measure}" for one in reversed(report.objectives[:-1])]
    return f"Of the Pareto front: {', of those '.join(steps)}."


def _validation(report: StudyReport) -> Iterator[str]:
    found = report.validation
    measure = report.objectives[0].measure
    yield "## Cross-validated"
    yield ""
    if found is None:
        yield f"There is none: {_why_nothing_is_held_out(report)}."
        yield ""
        return
    rivals = "1 other is" if found.rivals == 1 else f"{found.rivals} others are"
    yield (
        f"Each fold in turn had no say: the trial that the others pick is judged by it. {measure} is then "
        f"**{found.estimate:.4f}** (standard deviation over {len(found.folds)} folds {found.spread:.4f}), where the "
        f"picked trial's own mean is {found.in_sample:.4f}: an optimism of {found.optimism:+.4f}. "
        f"{found.agreement} of {len(found.folds)} times the same trial was picked; {rivals} within "
        "one standard error of the best."
    )
    yield ""
    yield from _table(
        ("held out", "queries", "picked by the others", "their mean", "here", f"trial {report.picked.number} here"),
        [
            (row.fold, str(row.queries), f"trial {row.picked}", f"{row.training:.4f}", f"{row.value:.4f}",
             f"{row.chosen_trial_value:.4f}")
            for row in found.folds
        ],
    )  # fmt: skip


def _why_nothing_is_held_out(report: StudyReport) -> str:
    measure = report.objectives[0].measure
    if len(report.folds) < 2:
        return "judged queries are of a single workspace"
    if report.objectives[0].is_time:
        return f"the first objective, {measure}, is a time, which is not known by folds"
    return f"{measure}, the first objective, judges queries of a single fold"


def _front(report: StudyReport) -> Iterator[str]:
    if len(report.objectives) < 2:
        return
    yield "## Pareto front"
    yield ""
    shown = sorted(report.front, key=lambda trial: -report.objectives[0].sign * trial.values[0])[:_FRONT_SHOWN]
    if len(shown) < len(report.front):
        yield f"The first {len(shown)} of {len(report.front)}; `study.parquet` has all."
        yield ""
    yield from _table(
        ("trial", *(one.measure for one in report.objectives), "keys"),
        [
            (
                str(trial.number),
                *(f"{value:.4f}" for value in trial.values),
                ", ".join(f"`{key}={_short(value)}`" for key, value in trial.assignment.items()),
            )
            for trial in shown
        ],
    )


def _importances(report: StudyReport) -> Iterator[str]:
    yield f"## What {report.objectives[0].measure} depends on (PED-ANOVA, shares)"
    yield ""
    if report.importances:
        rows = [(f"`{key}`", f"{share:.3f}") for key, share in report.importances.items()]
        yield from _table(("key", "share"), rows)
    else:
        yield f"It is not told: {_why_nothing_is_important(report)}."
        yield ""


def _why_nothing_is_important(report: StudyReport) -> str:
    different = sum(trial.same_as is None for trial in report.complete)
    if different < IMPORTANCE_FROM:
        return (
            f"{different} different configurations are complete; below {IMPORTANCE_FROM} the shares are mostly chance"
        )
    return "all trials are equally good"


def _trials(report: StudyReport) -> Iterator[str]:
    """The best trials, by the measures that what is searched changes."""
    names = list(dict.fromkeys(name for told in report.told.values() for name in told))[:_MEASURES_SHOWN]
    if names:
        yield "## What the trials changed"
        yield ""
        best = sorted(report.complete, key=lambda trial: -report.objectives[0].sign * trial.values[0])[:_TRIALS_SHOWN]
        if len(best) < len(report.complete):
            yield f"The best {len(best)} of {len(report.complete)}; `study.parquet` has all."
            yield ""
        yield from _table(
            ("trial", *(one.measure for one in report.objectives), *names),
            [
                (
                    str(trial.number),
                    *(f"{value:.4f}" for value in trial.values),
                    *(_told(report.told.get(trial.number, {}).get(name)) for name in names),
                )
                for trial in best
            ],
        )
    for note in report.notes:
        yield f"- {note}"
    if report.notes:
        yield ""


def _told(value: float | None) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        cells = " | ".join(cell.replace("|", r"\|") for cell in row)
        yield f"| {cells} |"
    yield ""
