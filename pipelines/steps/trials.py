"""The trials of a study: each one configuration, evaluated or recognised, by one process or by several workers."""

import os
import platform
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig
from optuna.trial import Trial, TrialState

from eval.configuration import config_hash
from eval.executor import Executor, FailedItem
from eval.experiment.experiment import Experiment
from eval.run import SUMMARY, read_summary
from eval.study.point import PointFolder, origin_of
from eval.study.queue import TrialQueue, Worker, quieten
from eval.study.report import CONFIG_HASH, SAME_AS, SECONDS, SUMS, finished
from eval.study.selection import FinishedTrial, best, sums_by_fold, values_by_query
from eval.study.settings import DEFAULT, TRIAL_FOLDERS, overall
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from pipelines.config import building
from pipelines.steps.interruption import interruption
from pipelines.steps.point import experiment_of, measured, parts_of
from pipelines.steps.search import StudySetup
from pipelines.views.output import answering
from pipelines.views.progress import progress
from pipelines.views.terminal import warn


class _PrunedError(Exception):
    """What was found for a share of the queries is enough."""


class TrialEnd(NamedTuple):
    """How a trial ended."""

    number: int
    told: str
    """In a line."""
    is_failure: bool = False


def run_trial(trial: Trial, queue: TrialQueue, search: StudySetup) -> TrialEnd:
    """Evaluate a trial, and say in the queue how it ended.

    An error of the configuration stops the trial, not the study, and is kept with the trial. One of the machine, as a
    full disk, or a defect that lets no trial be complete is raised, and the trial waits again.
    """
    started = time.monotonic()
    try:
        assignment = search.space.suggested(trial)
        config = search.configs.config(assignment)
        plain = building.resolved(config)
        known = config_hash(building.identity(plain))
        trial.set_user_attr(CONFIG_HASH, known)
        complete = [one for one in queue.known if one.state == TrialState.COMPLETE]
        again = next((one for one in complete if one.user_attrs.get(CONFIG_HASH) == known), None)
        if again is None:
            attributes, values = _evaluated(trial, assignment, config, plain, search)
        else:
            first = again.user_attrs.get(SAME_AS, again.number)
            attributes, values = {SUMS: again.user_attrs[SUMS], SAME_AS: first}, list(again.values)
    except _PrunedError as error:
        queue.prune(trial, str(error))
        return TrialEnd(
            trial.number, f"trial {trial.number}: stopped at {error} of the queries  {_values(trial.params)}"
        )
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
        return TrialEnd(trial.number, f"trial {trial.number} failed: {reason}", is_failure=True)
    queue.complete(trial, values, {**attributes, SECONDS: time.monotonic() - started})
    told = ", ".join(f"{one.measure} {value:.4f}" for one, value in zip(search.settings.wanted(), values, strict=True))
    if SAME_AS in attributes:
        told += f" (trial {attributes[SAME_AS]} again)"
    own = FinishedTrial(trial.number, assignment, tuple(values), attributes[SUMS])
    picked = best([*(finished(one, one.params) for one in complete), own], search.settings.wanted())
    told += f"; best {picked.values[0]:.4f}, trial {picked.number}"
    return TrialEnd(trial.number, f"trial {trial.number}: {told}  {_values(assignment)}")


def _evaluated(
    trial: Trial, assignment: Mapping[str, Any], config: DictConfig, plain: Mapping[str, Any], search: StudySetup
) -> tuple[dict[str, Any], list[float]]:
    label = f"trial {trial.number}: {_values(assignment)}"
    folder = _run(str(trial.number), config, plain, assignment, label, search, partial(_climb, trial, search))
    summary = read_summary(folder)
    objectives, values = search.settings.wanted(), list[float]()
    for one in objectives:
        if (value := overall(summary, one)) is None:
            raise LcmError(f"this configuration has no {one.measure}")
        values.append(value)
    return {SUMS: sums_by_fold(values_by_query(folder), objectives, search.folds)}, values


def default_of(queue: TrialQueue, search: StudySetup) -> Path | None:
    """The folder of the default, the configuration as it stands: of the trial that is it, else of a run beside the
    trials, which is made here unless it is there; None where another process is at work on that trial, or it cannot be
    measured, which is told."""
    config = search.configs.config({})
    plain = building.resolved(config)
    known = config_hash(building.identity(plain))
    for trial in queue.begun():
        if trial.user_attrs.get(CONFIG_HASH) == known and trial.state in (TrialState.COMPLETE, TrialState.RUNNING):
            own = search.folder / TRIAL_FOLDERS / str(trial.user_attrs.get(SAME_AS, trial.number))
            if trial.state == TrialState.RUNNING:
                return None
            if (own / SUMMARY).is_file():
                return own
    try:
        return _run(DEFAULT, config, plain, {}, DEFAULT, search)
    except Exception as error:  # the trials are sound without it
        if interruption(error) or is_of_machine(error):
            raise
        warn(f"the default could not be measured beside the trials: {error}")
        return None


def _run(
    name: str,
    config: DictConfig,
    plain: Mapping[str, Any],
    assignment: Mapping[str, Any],
    label: str,
    search: StudySetup,
    before: Callable[[Experiment], None] = lambda _: None,
) -> Path:
    """The folder of a configuration's numbers, which are found unless they are there, for whoever is gone may have had
    them and not said so; `before` is what is tried on a part of the dataset first."""
    kept = PointFolder(search.folder / TRIAL_FOLDERS / name)
    origin = origin_of(plain, search.dataset.digest)
    if not (kept.is_complete() and kept.is_of(origin)):
        experiment = experiment_of(config, search.dataset, parts_of(config, whole=plain), is_one_of_many=True)
        before(experiment)
        kept.clear()
        overrides = search.configs.overrides(assignment)
        kept.begin(origin, overrides, label, [one.measure for one in search.settings.wanted()])
        with progress() as show:
            measured(config, experiment, kept.path, show, overrides, plain)
    return kept.path


def _climb(trial: Trial, search: StudySetup, experiment: Experiment) -> None:
    """Measure a growing share of the queries, as long as the pruner lets it."""
    measure = search.settings.wanted()[0].measure
    with progress() as show:
        for rung in search.rungs:
            values = experiment.sampled(rung.part, rung.sample, measure, show)
            if len(values):
                trial.report(float(values.sum()) / len(values), rung.step)
            if trial.should_prune():
                raise _PrunedError(rung.name)


def _values(assignment: Mapping[str, Any]) -> str:
    told = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in assignment.items()}
    return " ".join(f"{key}={value}" for key, value in told.items())


@contextmanager
def queue_of(search: StudySetup) -> Iterator[TrialQueue]:
    """The queue of a study, for this process."""
    quieten()
    worker = Worker(search.folder / "workers", f"{platform.node()}-{os.getpid()}-{time.time_ns()}")
    with worker:
        queue = TrialQueue(search.settings, search.storage, worker)
        try:
            yield queue
        finally:
            queue.close()


def trials_here(queue: TrialQueue, search: StudySetup, started: float | None = None) -> Generator[TrialEnd, None, None]:
    """Make trials one after another, until there are as many as were asked for, or the time of the study is over, which
    runs since it was started, on the monotonic clock; else from now."""
    started = time.monotonic() if started is None else started
    limit = search.settings.timeout_s
    while limit is None or time.monotonic() - started < limit:
        trial = queue.claimed()
        if trial is None:
            return
        try:
            with queue.heartbeat(trial):
                ended = run_trial(trial, queue, search)
        except BaseException as error:
            if interruption(error):  # whoever comes next puts the trial back: our own half-done read may lock
                warn(f"stopped in trial {trial.number}; the same command goes on from there")
            raise
        yield ended


def trials_apart(executor: Executor, queue: TrialQueue, search: StudySetup) -> Generator[TrialEnd, None, None]:
    """Have workers make the trials; how each ended, as it ends. What a worker that died leaves is made by another, or
    at last here."""
    started = time.monotonic()
    of_one = replace(search, configs=search.configs.by_one_process())
    failures = 0
    try:
        with closing(executor.map(_trials_of_worker, [of_one] * executor.workers)) as messages:
            for message in messages:
                if isinstance(message, FailedItem):
                    failures += 1
                    warn(f"a worker came to no end: {message.reason}")
                else:
                    yield message
    except KeyboardInterrupt:
        warn("stopped in the trials at work; the same command goes on from there")
        raise
    if failures == executor.workers:
        raise LcmError("no worker came to its end, each said why above; the same command goes on from there")
    if failures:
        yield from trials_here(queue, of_one, started)


def _trials_of_worker(search: StudySetup) -> Iterator[TrialEnd]:
    if search.file is not None and not search.file.is_file():
        raise LcmError(
            f"{search.file} is not there where a worker is: name a folder that all machines see at this path, or share "
            "the study by study.storage=postgresql://HOST/DB"
        )
    with answering(is_json=False, is_quiet=True), queue_of(search) as queue:
        try:
            yield from trials_here(queue, search)
        except Exception as error:
            if is_of_machine(error) or isinstance(error, (LcmError, OSError)):
                raise
            raise LcmError(f"{type(error).__name__}: {error} (a defect; executor=none shows where)") from error
