"""What a person sees of a study at its end."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from pipelines.views.terminal import console, say

if TYPE_CHECKING:
    from eval.tuning.study_report import StudyReport

_SHOWN = 12


def show_study(report: "StudyReport", best: Sequence[str], folder: Path) -> None:
    """What was picked, what it is worth elsewhere, and what it depends on."""
    from eval.tuning.study_page import rule

    out = console()
    counts = ", ".join(f"{n} {name}" for name, n in report.counts().items() if n)
    say(f"study {report.name}: {len(report.trials)} trials ({counts})")
    names = [one.measure for one in report.objectives]
    picked = Table(f"picked: trial {report.picked.number}", "value")
    for one, value in zip(report.objectives, report.picked.values, strict=True):
        picked.add_row(f"{one.measure} ({one.direction})", f"{value:.4f}")
    for key, chosen in report.picked.assignment.items():
        picked.add_row(escape(key), escape(f"{chosen:.4g}" if isinstance(chosen, float) else str(chosen)))
    say(rule(report))
    out.print(picked, highlight=False, soft_wrap=False)
    _show_validation(report)
    if len(report.objectives) > 1:
        front = Table("Pareto front: trial", *names)
        shown = sorted(report.front, key=lambda trial: -report.objectives[0].sign * trial.values[0])
        for trial in shown[:_SHOWN]:
            front.add_row(str(trial.number), *(f"{value:.4f}" for value in trial.values))
        out.print(front, highlight=False, soft_wrap=False)
        if len(shown) > _SHOWN:
            say(f"{len(shown) - _SHOWN} more in {folder / 'study.parquet'}")
    if report.importances:
        shares = Table(f"{report.objectives[0].measure} depends on", "share")
        for key, share in list(report.importances.items())[:_SHOWN]:
            shares.add_row(escape(key), f"{share:.3f}")
        out.print(shares, highlight=False, soft_wrap=False)
    say(f"Repeat: {shlex.join(['lcm', 'evaluate', *best])}")
    say(f"Kept: {folder}")


def _show_validation(report: "StudyReport") -> None:
    out, found = console(), report.validation
    measure = report.objectives[0].measure
    if found is None:
        say("not cross-validated: one workspace has judged queries, or the first objective is not known by folds")
        return
    table = Table("held out", "queries", "picked by the others", "their mean", "held out", "the picked trial's")
    for row in found.folds:
        cells = (f"{row.training:.4f}", f"{row.value:.4f}", f"{row.chosen_trial_value:.4f}")
        table.add_row(escape(row.fold), str(row.queries), f"trial {row.picked}", *cells)
    table.add_row(
        "all",
        "",
        f"same {found.agreement} of {len(found.folds)} times",
        "",
        f"{found.estimate:.4f}",
        f"{found.in_sample:.4f}",
    )
    out.print(table, highlight=False, soft_wrap=False)
    say(
        f"{measure} on conversations that had no say: {found.estimate:.4f}, spread over folds {found.spread:.4f}; the "
        f"picked trial's own mean is {found.optimism:+.4f} too good; {found.rivals} other trials are within one "
        "standard error"
    )
