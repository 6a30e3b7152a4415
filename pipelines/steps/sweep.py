"""Sweep: many points of one configuration, checked before the first runs, each kept by itself and found again."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from eval.dataset.dataset import Dataset
from eval.executor.executor import Executor
from eval.executor.local import Local
from eval.experiment.experiment import Progress
from eval.experiment.point_record import POINT, point_record
from eval.experiment.run_folder import SUMMARY, config_hash, directions, read_summary
from eval.sweep.gain import gain
from eval.sweep.origin import Origin, origin_of, point_name
from eval.sweep.point_folder import PointFolder
from eval.sweep.results import PointResult
from eval.sweep.sweep_folder import write_sweep
from eval.tracking.tracking import Tracking
from lcm.errors import LcmError
from lcm.faults import counting, made_again
from lcm.plugins.settings.tables import named_table
from lcm.redaction import redacted
from pipelines.config import building, command_line
from pipelines.config.check import WrongOverridesError
from pipelines.config.command_line import Command, Multirun
from pipelines.config.composition import CompositionCache
from pipelines.config.conf_folder import EVALUATE
from pipelines.config.contracts import with_other_reasons
from pipelines.steps.interruption import exit_code
from pipelines.steps.point import evaluated, parts_of, told_of_external
from pipelines.steps.points_apart import BuiltPoint, PointJob, fail_with, run_by, shares_points
from pipelines.steps.reporting import reported
from pipelines.steps.sweep_log import SweepLog, watched
from pipelines.steps.sweep_notes import notes_before
from pipelines.views.progress import progress, working
from pipelines.views.terminal import compared_by, say, show_incidents, show_points, warn

_DECIDING = ("dataset", "experiment", "judgements", "measures")
"""Groups that decide what is asked and how it is measured: swept, they leave no default to hold points against."""
_DEFAULT = "default"
"""What the run beside the points is called."""
_LEFT_OUT = {
    "summarizers": "left out: a T5, whose weights are not bundled; after `lcm models get t5-small`, "
    "`lcm evaluate -m sweep=summarizers_t5 summarizer.model=t5-small` shows it"
}
"""Ready sweep -> what it cannot have, and how to get that."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep."""

    name: str
    """Of its folder."""
    label: str
    """The overrides that tell it from the others."""
    overrides: tuple[str, ...]


def sweep(command: Command) -> int:
    """`lcm evaluate -m`: run every point that has not run; returns the exit code.

    Raises:
        LcmError: before any point runs, if one cannot be composed and built; after all, if one has failed.
    """
    plugin = named_table(command.own["for"]) if "for" in command.own else None
    multirun = command_line.multirun(command)
    compositions = CompositionCache()
    checked = checked_points(multirun.points, compositions)
    points = list(checked)
    folder = _made(multirun, points)
    default = _default(multirun.points, checked, compositions)
    runs = list(dict.fromkeys([*points, *([] if default is None else [default])]))
    tracking: Tracking = checked[points[0]].parts["tracking"]
    executor: Executor = checked[points[0]].parts["executor"]
    is_shown = bool(checked[points[0]].config.report)
    for note in notes_before({point.label: checked[point] for point in points}, plugin):
        say(note)
    origins = _Origins(checked)
    failed: dict[str, str] = {}
    incidents = Counter[str]()
    with _alone(folder), SweepLog(tracking, folder) as logs:
        _refuse_other_points(folder, runs)
        with counting(incidents):
            todo = _unfinished(runs, points, folder, origins)
        if todo:
            logs.open()
        for point in runs:
            if point not in todo:
                logs.submit(folder / point.name)
        try:
            with progress() as show:
                if shares_points(executor, len(todo)):
                    failed = _run_apart(executor, todo, len(runs), folder, checked, origins, logs, show)
                else:
                    failed = _run_here(todo, len(runs), folder, checked, origins, logs, show)
        except KeyboardInterrupt as error:
            kept = sum(PointFolder(folder / point.name).is_complete() for point in points)
            logs.cancel()
            warn(
                f"interrupted: {kept} of {len(points)} points are kept in {folder}; the same command goes on from there"
            )
            return exit_code(error)
        results = _results(points, folder, failed)
        compared = compared_by(results)
        beside = None if default is None else _result(default, folder, failed, {})
        if beside is not None and beside.error:
            warn(f"the default could not be measured beside the points: {beside.error}")
        found = gain(folder, results, beside, compared)
        write_sweep(folder, results, compared, multirun.points, incidents, found)
        page = _page(folder) if is_shown else ""
        show_points(results, folder, found)
        if multirun.sweep in _LEFT_OUT:
            say(_LEFT_OUT[multirun.sweep])
        show_incidents(incidents)
        with working("logging"):
            where, unlogged = logs.finish()
    if where:
        say(f"Logged: {where}")
    if unlogged:
        warn(f"{unlogged}; the same command logs what is missing")
    if page:
        say(page)
    if without := [result for result in results if result.summary is None]:
        raise LcmError(
            f"{len(without)} of {len(points)} points failed, each said why above; the same command tries them again"
        )
    return 0


def _page(folder: Path) -> str:
    with progress() as show:
        return reported(folder, show)


def checked_points(wanted: Sequence[tuple[str, ...]], compositions: CompositionCache) -> dict[Point, BuiltPoint]:
    """Compose and build every run of a command, so that a typo in the last one stops the first.

    Returns:
        The points in order, each once.
    Raises:
        LcmError: naming every run that cannot be built.
    """
    common = set(wanted[0]).intersection(*wanted)
    points: dict[str, Point] = {}
    checked: dict[Point, BuiltPoint] = {}
    wrong: dict[str, list[str]] = {}
    errors: list[LcmError] = []
    for overrides in wanted:
        label = " ".join(override for override in overrides if override not in common) or " ".join(overrides)
        try:
            config = compositions.composed(overrides)
            parts = parts_of(config, overrides)
        except LcmError as refused:
            error = with_other_reasons(refused, EVALUATE) if isinstance(refused, WrongOverridesError) else refused
            errors.append(error)
            wrong.setdefault(str(error), []).append(label)
        else:
            plain = building.resolved(config)
            point = Point(point_name(plain), label, overrides)
            if points.setdefault(point.name, point) is point:
                checked[point] = BuiltPoint(config, plain, parts)
    if errors:
        told = (_blamed(message, labels, len(wanted)) for message, labels in wrong.items())
        raise LcmError("; ".join(told)) from errors[0]
    if len(checked) < len(wanted):
        warn(f"{len(wanted) - len(checked)} of {len(wanted)} points are the same as others: each runs once")
    return checked


class _Origins:
    """Where the numbers of points come from; each dataset is read once."""

    def __init__(self, checked: Mapping[Point, BuiltPoint]) -> None:
        self._checked = checked
        self._datasets: dict[str, Dataset] = {}

    def of(self, point: Point) -> tuple[Origin, Dataset]:
        built = self._checked[point]
        key = config_hash({"dataset": built.plain["dataset"]})
        if key not in self._datasets:
            self._datasets[key] = built.parts["dataset"].load()
        dataset = self._datasets[key]
        return origin_of(built.plain, dataset.digest, told_of_external(built.parts)), dataset

    def begin(self, point: Point, kept: PointFolder) -> Dataset:
        """Make the folder of a point ready for what it will hold; returns the point's dataset."""
        origin, dataset = self.of(point)
        kept.begin(origin, point.overrides, point.label)
        return dataset


def _default(
    wanted: Sequence[tuple[str, ...]], checked: dict[Point, BuiltPoint], compositions: CompositionCache
) -> Point | None:
    """What a command describes without what is swept: a point, or a run beside the points, which is then checked too;
    None where points are not measured alike, or nothing is left that can be composed."""
    common = set(wanted[0]).intersection(*wanted)
    swept = {
        override.lstrip("+~").partition("=")[0] for point in wanted for override in point if override not in common
    }
    if not swept or any(re.split(r"[./]", key)[0] in _DECIDING for key in swept):
        return None
    overrides = tuple(override for override in wanted[0] if override in common)
    try:
        config = compositions.composed(overrides)
        plain = building.resolved(config)
        default = Point(point_name(plain), _DEFAULT, overrides)
        if same := next((point for point in checked if point.name == default.name), None):
            return same
        checked[default] = BuiltPoint(config, plain, parts_of(config))
    except LcmError as error:
        warn(f"without what is swept nothing can be measured, so points are held against the first: {error}")
        return None
    return default


def _unfinished(runs: Sequence[Point], points: Sequence[Point], folder: Path, origins: _Origins) -> list[Point]:
    """What is still to be run, of the points and the default beside them; says what is found of the points."""
    todo, outdated = [], 0
    for point in runs:
        kept = PointFolder(folder / point.name)
        if not kept.is_complete():
            todo.append(point)
            continue
        if (damaged := kept.damaged()) is not None:
            made_again("point", f"{damaged} is damaged: the point is run again")
            todo.append(point)
            continue
        try:
            is_up_to_date = kept.is_of(origins.of(point)[0])
        except Exception:  # told when the point is run
            is_up_to_date = False
        if not is_up_to_date:
            outdated += 1
            todo.append(point)
        elif unsummed := kept.without_sum():
            made_again("point", f"{unsummed}: the point is run again")
            todo.append(point)
    if outdated:
        warn(f"{outdated} of {len(points)} points come from other code, data or files, and are run again")
    if done := sum(point not in todo for point in points):
        rest = "" if todo else ", nothing is left to run; hydra.sweep.dir=FOLDER begins anew in another"
        say(f"{done} of {len(points)} points are finished in {folder}{rest}")
    return todo


def _run_here(
    todo: Sequence[Point],
    n: int,
    folder: Path,
    checked: dict[Point, BuiltPoint],
    origins: _Origins,
    logs: SweepLog,
    show: Progress,
) -> dict[str, str]:
    """One after another in this process; returns why points failed, by name."""
    failed = {}
    for done, point in enumerate(todo, n - len(todo)):
        show("points", done, n)
        kept = PointFolder(folder / point.name)
        try:
            dataset = origins.begin(point, kept)
            built = checked.pop(point)
            evaluated(built.config, kept.path, show, dataset, built.parts, point.overrides, built.plain)
        except Exception as error:
            failed[point.name] = fail_with(kept, error)
        else:
            logs.submit(kept.path)
    return failed


def _run_apart(
    executor: Local,
    todo: Sequence[Point],
    n: int,
    folder: Path,
    checked: dict[Point, BuiltPoint],
    origins: _Origins,
    logs: SweepLog,
    show: Progress,
) -> dict[str, str]:
    """In the workers of an executor; returns why points failed before they were given away."""
    failed: dict[str, str] = {}
    jobs: list[PointJob] = []
    for point in todo:
        kept = PointFolder(folder / point.name)
        try:
            origins.begin(point, kept)
        except Exception as error:
            failed[point.name] = fail_with(kept, error)
        else:
            jobs.append(PointJob(kept.path, point.overrides, checked[point]))
    if jobs:
        with watched([job.folder for job in jobs], n, logs, show):
            run_by(executor, jobs)
    return failed


def _results(points: Sequence[Point], folder: Path, failed: Mapping[str, str]) -> list[PointResult]:
    common = set(points[0].overrides).intersection(*(point.overrides for point in points))
    results = []
    for point in points:
        pairs = (override.lstrip("+").partition("=") for override in point.overrides if override not in common)
        results.append(_result(point, folder, failed, {redacted(key): redacted(value) for key, _, value in pairs}))
    return results


def _result(point: Point, folder: Path, failed: Mapping[str, str], settings: Mapping[str, str]) -> PointResult:
    kept = PointFolder(folder / point.name)
    error = failed.get(point.name) or kept.failure()
    summary = None if error else kept.summary()
    if summary is None and error is None:
        error = "it was not finished"
    told = {} if summary is None else directions(kept.path)
    return PointResult(point.name, redacted(point.label), settings, summary, error, told)


def _made(multirun: Multirun, points: Sequence[Point]) -> Path:
    """The folder of the sweep: the one that is named, else one that the same points find again."""
    swept = dict.fromkeys(part.partition("=")[0] for point in points for part in point.label.split(" "))
    title = redacted(multirun.sweep or "+".join(list(swept)[:2]) or "sweep")
    title = re.sub(r"[^\w.+-]", "_", title)[:60]
    same = config_hash({"points": sorted(point.name for point in points)})[:8]
    folder = multirun.folder or Path("runs") / "sweeps" / f"{title}-{same}"
    if (folder / SUMMARY).is_file() and read_summary(folder)["kind"] != "sweep":
        raise LcmError(f"hydra.sweep.dir={folder} holds a run that is no sweep: name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LcmError(f"hydra.sweep.dir={folder} cannot be made ({error.strerror}); name another") from error
    return folder


def _refuse_other_points(folder: Path, runs: Sequence[Point]) -> None:
    """Refuse a folder with points that are none of this command's: its table would not tell of them, and MLflow would
    list them below it. A larger grid has those that were there; a point whose settings another lcm resolves otherwise
    is known by its overrides; and the default of a smaller grid may be none of a larger one's.

    Raises:
        LcmError: saying how many there are.
    """
    names = {point.name for point in runs}
    asked = {frozenset(map(redacted, point.overrides)) for point in runs}
    others = []
    for place in (record.parent for record in sorted(folder.glob(f"*/{POINT}")) if record.parent.name not in names):
        told = point_record(place)
        if told.get("label") != _DEFAULT and frozenset(told.get("overrides", ())) not in asked:
            others.append(place.name)
    if others:
        raise LcmError(
            f"hydra.sweep.dir={folder} holds {len(others)} points of another sweep, as {others[0]}: name another "
            "folder, or sweep over them too"
        )


def _alone(folder: Path) -> AbstractContextManager[object]:
    lock = FileLock(folder / "sweep.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise LcmError(f"{folder}: another process is at work on this sweep; wait, or name another folder") from error
    return lock


def _blamed(message: str, labels: Sequence[str], points: int) -> str:
    """The message, with the runs that it is about unless it is about all."""
    return message if len(labels) == points else f"{message} (in {', '.join(labels)})"
