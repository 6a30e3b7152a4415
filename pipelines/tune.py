"""lcm tune [GROUP=CHOICE ...] [KEY=VALUE ...]

Search a space of configurations for the best by one measure or several; pick one, and say what it is worth on
conversations that had no say in it, and against the default, the configuration as it stands. Kept in runs/tune/NAME:
study.md, study.parquet, best.yaml, plots, trials/.
The same command goes on where the last one stopped, and may run several times at once.

  lcm tune dataset=locomo                       what the default system's evidence weighs, by recall@10
  lcm tune dataset=locomo space=fusion study.name=fusion study.trials=100
  lcm tune space=fusion space.fusion.dense_weight.high=0.8   change a bound; =null leaves a key out
  lcm tune '+space.source={choices: [hybrid, dense]}'
  lcm tune 'study.objectives=[{measure: recall@10, direction: maximize, within: 0.01},
                              {measure: tokens@10, direction: minimize}]'
  lcm tune study.pruner=halving study.trials=1000   stop poor trials at a share of the queries
  lcm tune for=lancedb_pro@1.1.0-beta.11        say first which of the searched keys a plugin's version can take
  lcm tune executor=local executor.workers=4    make trials in several processes
  lcm tune study.storage=postgresql://HOST/DB   share a study between machines
  --cfg job                                     show the composed configuration
  --debug                                       show the traceback of an error

Groups and their choices (GROUP=CHOICE):
$GROUPS"""

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from omegaconf import DictConfig, OmegaConf

from eval.configuration import by_class, config_hash
from eval.executor import Executor, NoExecutor
from eval.measures.measure import timed
from eval.run import SUMMARY, commit, read_summary
from eval.study.results import PointResult, compared_by, why_equal
from eval.study.selection import folds_of, rungs_of
from eval.study.settings import DEFAULT, TRIAL_FOLDERS, Space, Study, space, unmeasured
from eval.table import Table
from eval.tracking.tracking import Log
from lcm.errors import LcmError
from lcm.faults import refused
from lcm.plugins.settings.tables import named_table
from pipelines.config import building, conf_folder, contracts
from pipelines.config.building import identity
from pipelines.config.command_line import Command, claimed
from pipelines.config.contracts import idle_note
from pipelines.config.overrides import key_of
from pipelines.config.trust import check_settable
from pipelines.steps.plugin_reach import keys_of_memory, reach_of_swept
from pipelines.steps.point import dataset_of, parts_of
from pipelines.steps.reporting import reported
from pipelines.steps.search import StudySetup, TrialConfigs
from pipelines.views.progress import progress
from pipelines.views.terminal import console, kept, log_and_report, say, show, warn

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from eval.study.queue import TrialQueue
    from eval.study.report import StudyReport, Worth

_OURS = re.compile(r"[+~]*(study|space|hydra(?!\.searchpath))\b")
"""Overrides of the study itself, rather than of its trials."""
_FEW_KEYS = 2
"""So many keys of a space may be misspelt; more that are not there are another system's."""
_LOCK = "report.lock"


def main(command: Command) -> int:
    """`lcm tune [GROUP=CHOICE ...] [KEY=VALUE ...]`."""
    config = command.config
    plugin = named_table(command.own["for"]) if "for" in command.own else None
    settings: Study = building.build(config, "study")
    searched = _space(config)
    configs = TrialConfigs([one for one in command.overrides if not _OURS.match(one)])
    parts = _checked(config, settings, searched, configs, command.overrides)
    if plugin is not None:
        points = [building.resolved(configs.config(assignment)) for _, assignment in searched.extremes()]
        keys = keys_of_memory([dimension.key for dimension in searched.dimensions], points[0])
        say(reach_of_swept(plugin, points, keys))
    dataset = dataset_of(parts)
    folds = folds_of(dataset, settings.folds)
    rungs = () if settings.pruner == "none" else rungs_of(dataset, settings.seed)
    with claimed(command, goes_on=True) as folder, parts["tracking"].logger() as log:
        search = StudySetup(settings, searched, configs, dataset, folds, rungs, folder)
        return _tune(search, config, parts["executor"], log)


def _space(config: DictConfig) -> Space:
    try:
        found = space(OmegaConf.to_container(config.space, resolve=True))  # type: ignore[arg-type]
    except ValueError as error:
        raise LcmError(str(error)) from error
    check_settable([dimension.key for dimension in found.dimensions], "space")
    return found


def _checked(
    config: DictConfig, settings: Study, searched: Space, configs: TrialConfigs, overrides: Sequence[str]
) -> dict[str, Any]:
    """Refuse what cannot work before the first trial: every bound and every choice is composed and built.

    Returns:
        The parts of the configuration as it stands.
    """
    built = parts_of(config, configs.common)
    measures = built["measures"]
    if problem := unmeasured(settings.wanted(), measures):
        raise LcmError(problem)
    for name, queries in timed(measures).items():
        if settings.pruner != "none":
            raise LcmError(
                f"study.pruner={settings.pruner} and measures.{name}.queries={queries}: a time is known of "
                f"whole runs alone; set measures.{name}.queries=0"
            )
    given = set(map(key_of, overrides))
    if twice := [dimension.key for dimension in searched.dimensions if dimension.key in given]:
        raise LcmError(
            f"{twice[0]} is searched and set on the command line: leave it out, or set space.{twice[0]}=null"
        )
    idle: dict[str | None, None] = {}
    with progress() as show:
        extremes = list(searched.extremes())
        for number, (key, assignment) in enumerate(extremes):
            show("checking the space", number, len(extremes))
            try:
                point = configs.config(assignment)
                building.build(point, "memory")
                contracts.refuse_unused(point, configs.overrides(assignment))
                idle[idle_note(point)] = None
            except LcmError as error:
                absent = [one for one in searched.dimensions if f"{one.key}: no such key" in str(error)]
                if len(absent) > _FEW_KEYS:
                    spaces = ", ".join(conf_folder.groups()["space"])
                    raise LcmError(
                        f"space: {len(absent)} of its keys are not in this configuration, as {absent[0].key}: choose "
                        f"the system that it is of, or another space=CHOICE: {spaces}"
                    ) from error
                raise LcmError(f"space.{key}={assignment[key]!r}: {error}") from error
    for note in filter(None, idle):
        say(f"In some trials {note}")
    return built


def _tune(search: StudySetup, config: DictConfig, executor: Executor, log: Log) -> int:
    from optuna.exceptions import StorageInternalError

    from pipelines.steps.trials import queue_of, trials_apart, trials_here

    is_tracked = True
    try:
        with queue_of(search) as queue:
            _begin(queue, search, config)
            if not isinstance(executor, NoExecutor) and search.settings.trials >= executor.workers:
                made = trials_apart(executor, queue, search)
            else:
                made = trials_here(queue, search)
            with closing(made):  # else workers go on while what stopped us is told
                for number, told, is_failure in made:
                    (warn if is_failure else say)(told)
                    place = search.folder / TRIAL_FOLDERS / str(number)
                    is_tracked = is_tracked and _logged(log, place, search.folder)
            with FileLock(search.folder / _LOCK):
                return _finish(queue, search, log, is_tracked)
    except StorageInternalError as error:
        if (fault := refused(error, search.storage.removeprefix("sqlite:///"))) is None:
            raise
        raise fault from error


def _begin(queue: "TrialQueue", search: StudySetup, config: DictConfig) -> None:
    """Refuse to go on with a study of something else."""
    base = search.configs.config({})
    setup = {
        "dataset": f"{search.dataset.name} {search.dataset.digest}",
        "space": OmegaConf.to_container(config.space, resolve=True),
        "study.objectives": [[one.measure, one.direction] for one in search.settings.wanted()],
        "study.folds": [list(fold.workspaces) for fold in search.folds],
        "the configuration beside the space": config_hash(by_class(identity(building.resolved(base)))),
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
        say(f"Going on with study {name}: {done} trials are there")


def _finish(queue: "TrialQueue", search: StudySetup, log: Log, is_tracked: bool) -> int:
    """Write and tell what is known, while others may still be at work."""
    from optuna.trial import TrialState
    from rich.markdown import Markdown

    from eval.study.folder import study_parts, write_study
    from eval.study.report import study_report

    settings, folder = search.settings, search.folder
    trials = queue.begun()
    points = _points(trials, folder / TRIAL_FOLDERS)
    shown = {one.measure for one in settings.wanted()}
    names = [name for name in compared_by(list(points.values())) if name not in shown]
    running = sum(not trial.state.is_finished() for trial in trials)
    if running and not any(trial.state == TrialState.COMPLETE for trial in trials):
        _say_running(running)
        return 0
    told = {number: {name: point.value(name) for name in names} for number, point in points.items()}
    notes = [note.replace("point", "trial") for note in why_equal(list(points.values()))]
    report = study_report(settings, search.dataset.identity(), search.folds, queue.study, trials, told, notes)
    found = _worth(queue, search, report, points)
    best = search.configs.overrides(report.picked.assignment)
    text = building.resolved_text(building.resolved(search.configs.config(report.picked.assignment)))
    write_study(folder, report, queue.study, best, text, _told(search), found)
    beside = [] if found is None else [found.baseline]
    for name in dict.fromkeys([*(str(trial.number) for trial in report.complete), *beside]):
        is_tracked = is_tracked and _logged(log, folder / TRIAL_FOLDERS / name, folder)
    for part in study_parts(report):
        if isinstance(part, Table):
            show(part, "study.md has all")
        else:
            console().print(Markdown(part), soft_wrap=False)
    for line in [] if found is None else found.told():
        say(line)
    say(f"Repeat: {shlex.join(['lcm', 'evaluate', *best])}")
    if found is not None:
        _say_next(folder, found)
    kept(folder)
    if running:
        _say_running(running)
    page = ""
    if search.configs.config({}).report:
        with progress() as step:
            page = reported(folder, step)
    if is_tracked:
        _logged(log, folder, None)
    if page:
        say(page)
    return 2 if report.counts()["failed"] else 0


def _worth(
    queue: "TrialQueue", search: StudySetup, report: "StudyReport", points: Mapping[int, PointResult]
) -> "Worth | None":
    """What the picked trial is worth against the default; None where that is not measured yet, or cannot be."""
    from eval.study.report import worth
    from pipelines.steps.trials import default_of

    place = default_of(queue, search)
    if place is None:
        return None
    label = DEFAULT if place.name == DEFAULT else f"trial {place.name}"
    default = PointResult(place.name, label, {}, read_summary(place))
    return worth(search.folder / TRIAL_FOLDERS, report, points, default, search.folds)


def _say_next(folder: Path, found: "Worth") -> None:
    """The next lines to type: what is no gain is not offered for use."""
    lines = []
    if found.verdict == "better":
        lines.append(["lcm", "export", str(folder), f"to=presets/{folder.name}"])
    if not found.is_default:
        lines.append(["lcm", "compare", str(folder)])
    for number, line in enumerate(lines):
        say(f"{'     ' if number else 'next:'} {shlex.join(line)}")


def _say_running(n: int) -> None:
    say(f"{n} trials are still at work elsewhere; who is last tells of all")


def _points(trials: Sequence["FrozenTrial"], folder: Path) -> dict[int, PointResult]:
    """The complete trials as points of a sweep, by number; those that are kept on another machine are left out."""
    from eval.study.report import SAME_AS

    points = {}
    for trial in trials:
        kept = folder / str(trial.user_attrs.get(SAME_AS, trial.number))
        if trial.values is not None and (kept / SUMMARY).exists():
            settings = {key: str(value) for key, value in trial.params.items()}
            points[trial.number] = PointResult(kept.name, f"trial {trial.number}", settings, read_summary(kept))
    return points


def _told(search: StudySetup) -> Mapping[str, object]:
    settings = search.settings
    names = ("trials", "sampler", "startup_trials", "seed", "pruner")
    return {
        **{f"study.{name}": getattr(settings, name) for name in names},
        "study.folds": len(search.folds),
        "space": ", ".join(dimension.key for dimension in search.space.dimensions),
        "overrides": " ".join(search.configs.common),
    }


def _logged(log: Log, folder: Path, parent: Path | None) -> bool:
    """Log a folder if it is complete; whether tracking works."""
    return not (folder / SUMMARY).is_file() or log_and_report(log, folder, parent)
