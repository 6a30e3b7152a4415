"""Tune: search a space of configurations, pick one, and say what it is worth."""

import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock
from omegaconf import DictConfig, OmegaConf

from eval.dataset.dataset import Dataset, DatasetLoader
from eval.executor.timing import refuse_timing
from eval.experiment.run_folder import SUMMARY, commit, config_hash
from eval.tracking.tracking import Log, Tracking, TrackingError
from eval.tuning.folds import Fold, folds_of
from eval.tuning.objective import measured, unmeasured
from eval.tuning.space import Space, space
from eval.tuning.study import Study
from lcm.errors import LcmError
from pipelines.config import building, command_line, composition, conf_folder
from pipelines.config.trial_config import TrialConfigs
from pipelines.point import PARTS, identity
from pipelines.views.study_table import show_study
from pipelines.views.terminal import console, progress, warn

if TYPE_CHECKING:
    from eval.tuning.trial_queue import TrialQueue

_TUNE = "tune"
_OURS = re.compile(r"[+~]*(study|space|hydra)\b")
"""Overrides of the study itself, rather than of its trials."""
_TRIALS, _WORKERS, _LOCK = "trials", "workers", "report.lock"


@dataclass(frozen=True, slots=True)
class Search:
    """What all trials of a study have in common."""

    settings: Study
    space: Space
    configs: TrialConfigs
    dataset: Dataset
    folds: tuple[Fold, ...]
    folder: Path


def main(arguments: Sequence[str]) -> int:
    """`lcm tune [GROUP=CHOICE ...] [KEY=VALUE ...]`."""
    asked = command_line.command(arguments, _TUNE)
    if asked.is_multirun:
        raise LcmError("`lcm tune` is one study at a time, and makes its own grid of nothing: leave -m out")
    if not asked.is_run:
        with composition.explained(asked.overrides, _TUNE):
            command_line.run_task(lambda config: None, asked)
        return 0
    config = composition.composed(asked.overrides, _TUNE)
    settings: Study = building.build(config, "study")
    searched = _space(config)
    configs = TrialConfigs([one for one in asked.overrides if not _OURS.match(one)])
    _check(config, settings, searched, configs, asked.overrides)
    loader: DatasetLoader = building.build(config, "dataset")
    dataset = loader.load()
    folds = folds_of(dataset, settings.folds)
    named = any(one.startswith("hydra.run.dir=") for one in asked.overrides)
    stable = () if named else (f"hydra.run.dir=runs/tune/{settings.name}",)
    folder = command_line.claimed_folder(replace(asked, overrides=(*asked.overrides, *stable)))
    tracking: Tracking = building.build(config, "tracking")
    with tracking.logger() as log:
        return _tune(Search(settings, searched, configs, dataset, folds, folder), config, log)


def _space(config: DictConfig) -> Space:
    try:
        return space(OmegaConf.to_container(config.space, resolve=True))  # type: ignore[arg-type]
    except ValueError as error:
        raise LcmError(str(error)) from error


def _check(
    config: DictConfig, settings: Study, searched: Space, configs: TrialConfigs, overrides: Sequence[str]
) -> None:
    """Refuse what cannot work before the first trial: every bound and every choice is composed and built."""
    building.refuse_unused(config, configs.common)
    built = {part: building.build(config, part) for part in PARTS}
    building.flag(config, "cache")
    refuse_timing(built["executor"], built["latency"].queries)
    names = measured(built["measures"], built["retention"], built["latency"])
    if problem := unmeasured(settings.wanted(), names):
        raise LcmError(problem)
    if settings.pruner != "none" and built["latency"].queries:
        raise LcmError(
            f"study.pruner={settings.pruner} and latency.queries={built['latency'].queries}: a latency is not known by "
            "folds; set latency.queries=0"
        )
    given = {one.lstrip("+~").partition("=")[0] for one in overrides}
    if twice := [dimension.key for dimension in searched.dimensions if dimension.key in given]:
        raise LcmError(
            f"{twice[0]} is searched and set on the command line: leave it out, or set space.{twice[0]}=null"
        )
    with progress() as show:
        extremes = list(searched.extremes())
        for number, (key, assignment) in enumerate(extremes):
            show("checking the space", number, len(extremes))
            try:
                point = configs.config(assignment)
                building.build(point, "memory")
                building.refuse_unused(point, configs.overrides(assignment))
            except LcmError as error:
                raise LcmError(f"space.{key}={assignment[key]!r}: {error}") from error


def _tune(search: Search, config: DictConfig, log: Log) -> int:
    from eval.tuning.sampling import quieten
    from eval.tuning.trial_queue import TrialQueue
    from eval.tuning.worker import Worker
    from pipelines.trial import run_trial

    quieten()
    settings, folder = search.settings, search.folder
    started = time.monotonic()
    worker = Worker(folder / _WORKERS, f"{platform.node()}-{os.getpid()}-{time.time_ns()}")
    storage = settings.storage or f"sqlite:///{folder.resolve() / 'study.db'}"
    is_tracked = True
    with worker:
        queue = TrialQueue(settings, storage, worker)
        try:
            _begin(queue, search, config)
            while settings.timeout_s is None or time.monotonic() - started < settings.timeout_s:
                trial = queue.claimed()
                if trial is None:
                    break
                try:
                    with queue.heard(trial):
                        run_trial(trial, queue, search)
                except KeyboardInterrupt:
                    queue.give_back(trial.number)
                    warn(f"stopped in trial {trial.number}; the same command goes on from there")
                    raise
                is_tracked = is_tracked and _logged(log, folder / _TRIALS / str(trial.number), folder)
            with FileLock(folder / _LOCK):
                return _finish(queue, search, log, is_tracked)
        finally:
            queue.close()


def _begin(queue: "TrialQueue", search: Search, config: DictConfig) -> None:
    """Refuse to go on with a study of something else."""
    base = search.configs.config({})
    setup = {
        "dataset": f"{search.dataset.name} {search.dataset.digest}",
        "space": OmegaConf.to_container(config.space, resolve=True),
        "study.objectives": [[one.measure, one.direction] for one in search.settings.wanted()],
        "study.folds": [list(fold.workspaces) for fold in search.folds],
        "the configuration beside the space": config_hash(identity(base)),
        "commit": commit(),
    }
    current = {dimension.key: OmegaConf.select(base, dimension.key) for dimension in search.space.dimensions}
    current = {
        key: search.configs.chosen(key) if key in conf_folder.groups() else value for key, value in current.items()
    }
    first = search.space.held(current) if search.settings.start else None
    known = queue.begin(setup, first)
    name = search.settings.name
    for key, value in setup.items():
        if known.get(key) == value:
            continue
        if key == "commit":
            warn(f"study {name} was begun with commit {known.get(key)}, this is {value}: values may not compare")
            continue
        raise LcmError(
            f"study.name={name} was begun with something else ({key} differs): give study.name another value, or "
            "repeat the command as it was"
        )
    done = len(queue.begun())
    if done:
        console().print(f"Going on with study {name}: {done} trials are there", highlight=False, markup=False)


def _finish(queue: "TrialQueue", search: Search, log: Log, is_tracked: bool) -> int:
    """Write and tell what is known, while others may still be at work."""
    from eval.tuning.sampling import importances
    from eval.tuning.study_folder import write_study
    from eval.tuning.study_report import first_error, study_report

    settings, dataset, folder = search.settings, search.dataset, search.folder
    trials = queue.begun()
    report = study_report(
        name=settings.name,
        dataset={"name": dataset.name, "protocol": dataset.protocol, "digest": dataset.digest},
        objectives=settings.wanted(),
        folds=[fold.name for fold in search.folds],
        trials=trials,
        importances=importances(queue.study, settings.wanted()[0].sign),
    )
    if report is None:
        reason = first_error(trials)
        raise LcmError(f"no trial of study {settings.name} is complete{f': {reason}' if reason else ' yet'}")
    best = search.configs.overrides(report.picked.assignment)
    text = building.resolved_text(search.configs.config(report.picked.assignment))
    write_study(folder, report, queue.study, best, text, _told(search))
    for trial in report.complete:
        is_tracked = is_tracked and _logged(log, folder / _TRIALS / str(trial.number), folder)
    show_study(report, best, folder)
    running = report.counts()["running"]
    if running:
        console().print(f"{running} trials are still at work elsewhere; who is last tells of all", highlight=False)
    if is_tracked:
        _logged(log, folder, None)
    return 2 if report.counts()["failed"] else 0


def _told(search: Search) -> Mapping[str, object]:
    settings = search.settings
    names = ("trials", "sampler", "startup_trials", "seed", "pruner")
    return {
        **{f"study.{name}": getattr(settings, name) for name in names},
        "study.folds": len(search.folds),
        "space": ", ".join(dimension.key for dimension in search.space.dimensions),
        "overrides": " ".join(search.configs.common),
    }


def _logged(log: Log, folder: Path, parent: Path | None) -> bool:
    """Log a complete folder; whether tracking works."""
    if not (folder / SUMMARY).is_file():
        return True
    try:
        where = log(folder, parent)
    except TrackingError as error:
        warn(str(error))
        return False
    if where and parent is None:
        console().print(f"Logged: {where}", highlight=False, markup=False)
    return True
