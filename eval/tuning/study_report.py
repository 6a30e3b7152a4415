"""What a study found, gathered from its queue of trials."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from eval.tuning.finished_trial import FinishedTrial
from eval.tuning.objective import Objective
from eval.tuning.selection import CrossValidation, best, cross_validated, pareto_front
from eval.tuning.trial_queue import ERROR, STOPPED_AT

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
    name: str,
    dataset: Mapping[str, str],
    objectives: tuple[Objective, ...],
    folds: Sequence[str],
    trials: Sequence[FrozenTrial],
    importances: Mapping[str, float],
    told: Mapping[int, Mapping[str, float | None]],
    notes: Sequence[str],
) -> StudyReport | None:
    """Gather, as `StudyReport` has it; None where no trial is complete."""
    complete = [finished(trial, trial.params) for trial in trials if trial.state == TrialState.COMPLETE]
    if not complete:
        return None
    return StudyReport(
        name=name,
        dataset=dataset,
        objectives=objectives,
        folds=tuple(folds),
        trials=tuple(trials),
        complete=tuple(complete),
        picked=best(complete, objectives),
        front=tuple(pareto_front(complete, objectives)),
        validation=cross_validated(complete, objectives, folds),
        importances=importances,
        told=told,
        notes=tuple(notes),
    )


def first_error(trials: Sequence[FrozenTrial]) -> str | None:
    return next((trial.user_attrs[ERROR] for trial in trials if ERROR in trial.user_attrs), None)
