"""What a study found, gathered from its queue of trials, and what its pick is worth against the default."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import optuna
import polars as pl
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, TrialState

from eval.comparison.pairing import Pairing, Verdict, comparable
from eval.study.gain import Sides, rows_against
from eval.study.queue import ERROR, STOPPED_AT
from eval.study.results import PointResult
from eval.study.selection import (
    CrossValidation,
    FinishedTrial,
    Fold,
    best,
    cross_validated,
    pareto_front,
    values_by_query,
)
from eval.study.settings import Objective, Study
from eval.table import interval, probability, signed
from lcm.errors import LcmError

CONFIG_HASH, SAME_AS, SUMS, SECONDS = "config_hash", "same_as", "sums", "seconds"
"""Attributes of a trial."""
STATES = {
    TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}  # fmt: skip
"""How a trial stands, in words."""


@dataclass(frozen=True, slots=True)
class StudyReport:
    """The results of a study that has at least one complete trial."""

    name: str
    dataset: Mapping[str, str]
    """name, protocol, digest."""
    objectives: tuple[Objective, ...]
    folds: tuple[str, ...]
    trials: tuple[FrozenTrial, ...]
    complete: tuple[FinishedTrial, ...]
    picked: FinishedTrial
    front: tuple[FinishedTrial, ...]
    validation: CrossValidation | None
    """None where nothing can be held out."""
    importances: Mapping[str, float]
    """Of keys, for the first objective; empty where too little is known."""
    told: Mapping[int, Mapping[str, float | None]] = field(default_factory=dict)
    """Complete trial -> measure -> value, of the measures that what is searched changes."""
    notes: tuple[str, ...] = ()
    """Why all trials are equal, where they are."""

    def counts(self) -> dict[str, int]:
        """How many trials ended how."""
        ended = [trial.state for trial in self.trials]
        repeated = sum(trial.same_as is not None for trial in self.complete)
        return {**{name: ended.count(state) for state, name in STATES.items()}, "repeated": repeated}

    def stopped_at(self) -> dict[str, int]:
        """Share of the judged queries -> how many trials were stopped there; the smallest share first."""
        shares = Counter(trial.user_attrs[STOPPED_AT] for trial in self.trials if trial.state == TrialState.PRUNED)
        return dict(sorted(shares.items(), key=lambda item: Fraction(item[0])))


def finished(trial: FrozenTrial, assignment: Mapping[str, Any]) -> FinishedTrial:
    """A complete trial as it stands in the queue."""
    return FinishedTrial(
        number=trial.number,
        assignment=assignment,
        values=tuple(trial.values),
        sums=trial.user_attrs[SUMS],
        same_as=trial.user_attrs.get(SAME_AS),
    )


def study_report(
    settings: Study,
    dataset: Mapping[str, str],
    folds: Sequence[Fold],
    study: OptunaStudy,
    trials: Sequence[FrozenTrial],
    told: Mapping[int, Mapping[str, float | None]],
    notes: Sequence[str],
) -> StudyReport:
    """Gather, as `StudyReport` has it.

    Raises:
        LcmError: if no trial is complete; it names what the first that failed said.
    """
    complete = [finished(trial, trial.params) for trial in trials if trial.state == TrialState.COMPLETE]
    if not complete:
        reason = next((f": {trial.user_attrs[ERROR]}" for trial in trials if ERROR in trial.user_attrs), " yet")
        raise LcmError(f"no trial of study {settings.name} is complete{reason}")
    objectives, names = settings.wanted(), [fold.name for fold in folds]
    return StudyReport(
        name=settings.name,
        dataset=dataset,
        objectives=objectives,
        folds=tuple(names),
        trials=tuple(trials),
        complete=tuple(complete),
        picked=best(complete, objectives),
        front=tuple(pareto_front(complete, objectives)),
        validation=cross_validated(complete, objectives, names),
        importances=importances(study, objectives[0].sign),
        told=told,
        notes=tuple(notes),
    )


IMPORTANCE_FROM = 30
"""Different configurations: the best tenth, which is held against all, is then three trials at least."""


def importances(study: OptunaStudy, sign: int) -> Mapping[str, float]:
    """How much each key decides whether the first objective is good, by PED-ANOVA: shares that add up to 1.

    Args:
        sign: of the first objective; 1 = the larger, the better.
    Returns:
        Empty if fewer than `IMPORTANCE_FROM` trials are complete, or all are equally good.
    Source: Watanabe, Bansal and Hutter, "PED-ANOVA", IJCAI 2023.
    """
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    values = {trial.values[0] for trial in complete}
    if sum(SAME_AS not in trial.user_attrs for trial in complete) < IMPORTANCE_FROM or len(values) < 2:
        return {}
    with warnings.catch_warnings():
        # Of low values: so it is meant.
        warnings.filterwarnings("ignore", message="PedAnovaImportanceEvaluator computes|Some regimes for parameter")
        return optuna.importance.get_param_importances(study, target=lambda trial: -sign * trial.values[0])


Row = Mapping[str, Any]
"""Of `PAIRED_SCHEMA`."""
_TOLD = ("measure", "n", "baseline", "candidate", "difference", "low", "high", "p_holm", "verdict")


@dataclass(frozen=True, slots=True)
class Worth:
    """A study's choice beside the default, by the objectives that queries have values of."""

    label: str
    """What the picked trial is called."""
    folder: str
    """Of the picked trial, below the study's trials."""
    baseline: str
    """Folder of the default, likewise: of a trial, or a run beside them."""
    baseline_label: str
    picked: Sequence[Row]
    """The picked trial against the default, an objective each, corrected for having chosen among all trials; empty
    where it is the default, or cannot be paired with it."""
    among: int
    """How many trials were held against the default."""
    held_out: Sequence[Row]
    """The same where each fold had no say: its queries are answered by the trial that the other folds picked. Empty
    where nothing is held out."""

    @property
    def is_default(self) -> bool:
        return self.folder == self.baseline

    @property
    def verdict(self) -> Verdict | None:
        """Better by an objective and worse by none, or the reverse: on what had no say, as far as something has none;
        None where nothing could be paired."""
        if self.is_default:
            return "same"
        found = {row["verdict"] for row in self.held_out or self.picked}
        if not found:
            return None
        if found & {"better", "worse"}:
            return "better" if "worse" not in found else "worse" if "better" not in found else "cannot tell"
        return "same" if found == {"same"} else "cannot tell"

    def told(self) -> list[str]:
        """What the choice is worth, in sentences."""
        if self.is_default:
            return ["against the default: no trial is better, so the default is picked"]
        if not self.picked:
            why = "its objectives have no value for each query, or its folder lies on another machine"
            return [f"{self.label} cannot be held against the default: {why}"]
        chosen = f"corrected for having chosen among {self.among}"
        lines = [f"{self.label} against {self.baseline_label}, {_written(row, chosen)}" for row in self.picked]
        lines += [
            f"on conversations that had no say in the choice, {_written(row, 'paired by query')}"
            for row in self.held_out
        ]
        return [*lines, f"verdict: {self.verdict}"]

    def record(self) -> dict[str, Any]:
        """For the summary of the study."""
        return {
            "folder": self.folder,
            "label": self.label,
            "baseline": self.baseline,
            "is_default": True,
            "verdict": self.verdict,
            "among": self.among,
            "picked": [{name: row[name] for name in _TOLD} for row in self.picked],
            "held_out": [{name: row[name] for name in _TOLD} for row in self.held_out],
        }


def worth(
    folder: Path, report: StudyReport, points: Mapping[int, PointResult], default: PointResult, folds: Sequence[Fold]
) -> Worth:
    """Hold the choice of a study against the default.

    Args:
        folder: of the trials.
        points: the complete trials whose folders are at hand, by number.
        default: the configuration as it stands: one of them, or a run beside them.
        folds: of the study.
    """
    measures = [one.measure for one in report.objectives if not one.is_time]
    number = report.picked.number if report.picked.same_as is None else report.picked.same_as
    own = {other: point for other, point in points.items() if point.name == str(other)}
    rows = rows_against(Sides(folder, default, measures), own, measures) if measures else pl.DataFrame()
    baseline = f"the default ({default.label})" if default.name in {str(one) for one in points} else "the default"
    return Worth(
        label=f"trial {report.picked.number}",
        folder=str(number),
        baseline=default.name,
        baseline_label=baseline,
        picked=[] if rows.is_empty() else list(rows.filter(point=number).iter_rows(named=True)),
        among=0 if rows.is_empty() else rows["point"].n_unique(),
        held_out=list(_held_out(folder, report, own, default, folds, measures)),
    )


def _held_out(
    folder: Path,
    report: StudyReport,
    points: Mapping[int, PointResult],
    default: PointResult,
    folds: Sequence[Fold],
    measures: Sequence[str],
) -> Iterator[Row]:
    """What the trials that others picked find in each fold, against what the default finds there."""
    found = report.validation
    if found is None or not measures:
        return
    originals = {trial.number: trial.number if trial.same_as is None else trial.same_as for trial in report.complete}
    picked = {row.fold: originals[row.picked] for row in found.folds}
    if any(number not in points for number in picked.values()):
        return
    base = comparable(folder / default.name, default.label)
    values = pl.concat(
        values_by_query(folder / str(picked[fold.name]))
        .filter(pl.col("workspace_id").is_in(fold.workspaces))
        .select("query_id", "measure", "value")
        for fold in folds
        if fold.name in picked
    )
    side = base.having("picked by the others", values=values.filter(pl.col("value").is_finite()))
    yield from Pairing().rows(base, [side], measures).iter_rows(named=True)


def _written(row: Row, how: str) -> str:
    is_cost = row["lower_is_better"]
    return (
        f"{row['measure']} {row['baseline']:.4f} -> {row['candidate']:.4f}: {signed(row['difference'], is_cost)} "
        f"{interval(row)}, {row['verdict']} (p {probability(row['p_holm'])}, {how})"
    )
