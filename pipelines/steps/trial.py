"""A trial: one configuration of a study, evaluated, or recognised as one that was."""

import time
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig
from optuna.trial import Trial, TrialState

from eval.experiment.experiment import Experiment, Outcome
from eval.experiment.run_folder import config_hash, read_summary
from eval.experiment.workspace import WorkspaceResult
from eval.measures.names import SYSTEM_ARM
from eval.sweep.origin import origin_of
from eval.sweep.point_folder import PointFolder
from eval.tuning.finished_trial import sums_by_fold, values_by_query
from eval.tuning.objective import overall
from eval.tuning.study import TRIAL_FOLDERS
from eval.tuning.study_report import CONFIG_HASH, SAME_AS, SECONDS, SUMS
from eval.tuning.trial_queue import TrialQueue
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from pipelines.config import building
from pipelines.config.building import identity
from pipelines.steps.interruption import interruption
from pipelines.steps.point import experiment_of, written
from pipelines.steps.search import StudySetup
from pipelines.views.progress import progress
from pipelines.views.terminal import say, warn


class _PrunedError(Exception):
    """What was found in the first folds is enough."""


def run_trial(trial: Trial, queue: TrialQueue, search: StudySetup) -> None:
    """Evaluate a trial, and say in the queue how it ended.

    An error of the configuration stops the trial, not the study, and is kept with the trial.

    Raises:
        OSError: of a full disk and the like; the trial waits again.
        Exception: of a defect that lets no trial be complete; likewise. Of an interruption; the trial is left as it is.
    """
    started = time.monotonic()
    try:
        assignment = search.space.suggested(trial)
        config = search.configs.config(assignment)
        known = config_hash(identity(config))
        trial.set_user_attr(CONFIG_HASH, known)
        attributes, values = _taken_over(known, queue) or _evaluated(trial, assignment, config, search)
    except _PrunedError:
        queue.prune(trial)
        _say(trial.number, "pruned", trial.params)
        return
    except Exception as error:  # it is recorded, and the other trials may be sound
        if interruption(error):
            raise
        is_defect = not isinstance(error, LcmError)
        is_outside = isinstance(error, (OSError, MemoryError)) or is_of_machine(error)  # not of the configuration
        if is_outside or (is_defect and not queue.trials(TrialState.COMPLETE)):
            queue.give_back(trial.number)
            raise
        reason = f"{type(error).__name__}: {error} (a defect)" if is_defect else str(error)
        queue.fail(trial, reason)
        warn(f"trial {trial.number} failed: {reason}")
        return
    queue.complete(trial, values, {**attributes, SECONDS: time.monotonic() - started})
    told = ", ".join(f"{one.measure} {value:.4f}" for one, value in zip(search.settings.wanted(), values, strict=True))
    if SAME_AS in attributes:
        told += f" (trial {attributes[SAME_AS]} again)"
    _say(trial.number, told + _best_so_far(queue, search), assignment)


def _taken_over(known: str, queue: TrialQueue) -> tuple[dict[str, Any], list[float]] | None:
    """What a complete trial of the same configuration has."""
    for other in queue.trials(TrialState.COMPLETE):
        if other.user_attrs.get(CONFIG_HASH) == known:
            first = other.user_attrs.get(SAME_AS, other.number)
            return {SUMS: other.user_attrs[SUMS], SAME_AS: first}, list(other.values)
    return None


def _evaluated(
    trial: Trial, assignment: Mapping[str, Any], config: DictConfig, search: StudySetup
) -> tuple[dict[str, Any], list[float]]:
    folder = search.folder / TRIAL_FOLDERS / str(trial.number)
    kept = PointFolder(folder)
    origin = origin_of(building.resolved(config), search.dataset.digest)
    if not (kept.is_complete() and kept.is_of(origin)):  # else one that is gone had finished it, and not said so yet
        kept.clear()
        started = time.perf_counter()
        overrides = search.configs.overrides(assignment)
        named = [one.measure for one in search.settings.wanted()]
        kept.begin(origin, overrides, f"trial {trial.number}: {_values(assignment)}", named)
        experiment = experiment_of(config, search.dataset)
        with progress() as show:
            if search.settings.pruner == "none":
                outcome = experiment.run(show)
            else:
                outcome = _run_by_folds(trial, experiment, search, kept)
        seconds = {"total": time.perf_counter() - started}
        written(folder, outcome, search.dataset, config, overrides, seconds)
    summary = read_summary(folder)
    objectives = search.settings.wanted()
    values = []
    for one in objectives:
        value = overall(summary, one)
        if value is None:
            raise LcmError(f"this configuration has no {one.measure}")
        values.append(value)
    return {SUMS: sums_by_fold(values_by_query(folder), objectives, search.folds)}, values


def _run_by_folds(trial: Trial, experiment: Experiment, search: StudySetup, kept: PointFolder) -> Outcome:
    """Run fold by fold, as long as the pruner lets it."""
    measure = search.settings.wanted()[0].measure
    results: dict[str, WorkspaceResult] = {}
    total, n = 0.0, 0
    with progress() as show:
        for step, fold in enumerate(search.folds):
            part = experiment.part(fold.workspaces)
            found = part.results(show)
            results |= {one.workspace_id: one for one in found}
            values = part.outcome(found).values.filter(arm=SYSTEM_ARM, measure=measure)["value"]
            total, n = total + float(values.sum()), n + len(values)
            if n:
                trial.report(total / n, step)
            if fold is not search.folds[-1] and trial.should_prune():
                kept.clear()
                raise _PrunedError
    return experiment.outcome([results[workspace] for workspace in search.dataset.workspaces])


def _best_so_far(queue: TrialQueue, search: StudySetup) -> str:
    from eval.tuning.selection import best
    from eval.tuning.study_report import finished

    complete = [finished(one, one.params) for one in queue.trials(TrialState.COMPLETE)]
    if not complete:
        return ""
    picked = best(complete, search.settings.wanted())
    return f"; best {picked.values[0]:.4f}, trial {picked.number}"


def _say(number: int, told: str, assignment: Mapping[str, Any]) -> None:
    say(f"trial {number}: {told}  {_values(assignment)}")


def _values(assignment: Mapping[str, Any]) -> str:
    return " ".join(
        f"{key}={f'{value:.4g}' if isinstance(value, float) else value}" for key, value in assignment.items()
    )
