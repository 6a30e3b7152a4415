"""Sweep: many points of one configuration, checked before the first runs, each kept by itself and found again."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from functools import cache
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout
from omegaconf import DictConfig

from eval.configuration import config_hash
from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Progress
from eval.measures.measure import directions_of, timed
from eval.run import POINT, SUMMARY, point_record, read_summary
from eval.study.gain import gain
from eval.study.point import Origin, PointFolder, content_named, origin_of, point_name
from eval.study.results import PointResult, compared_by
from eval.study.sweep import write_sweep
from eval.tracking.tracking import Log, Tracking, TrackingError
from lcm.errors import LcmError
from lcm.faults import counting, made_again
from lcm.plugins.settings.tables import Table, named_table
from lcm.redaction import redacted
from pipelines.config import building, command_line
from pipelines.config.check import WrongOverridesError
from pipelines.config.command_line import Command, Multirun
from pipelines.config.composition import CompositionCache
from pipelines.config.conf_folder import EVALUATE
from pipelines.config.contracts import alike_notes, with_other_reasons
from pipelines.config.overrides import group_of
from pipelines.steps.interruption import exit_code
from pipelines.steps.plugin_reach import keys_of_memory, reach_of_swept
from pipelines.steps.point import READ, Point, PointJob, parts_of, reason_of, run_points, told_of_external
from pipelines.steps.reporting import reported
from pipelines.views.progress import progress, working
from pipelines.views.runs import show_points
from pipelines.views.terminal import say, show_incidents, warn

_AT_ONCE = 8
"""Points that wait for each other: what is the same for all is asked of the server once for so many."""
_DECIDING = ("dataset", "experiment", "judgements", "measures")
"""Groups that decide what is asked and how it is measured: swept, they leave no default to hold points against."""
_DEFAULT = "default"
"""What the run beside the points is called."""
_LEFT_OUT = {
    "summarizers": "left out: a T5, whose weights are not bundled; after `lcm models get t5-small`, "
    "`lcm evaluate -m sweep=summarizers_t5 summarizer.model=t5-small` shows it"
}
"""Ready sweep -> what it cannot have, and how to get that."""


def sweep(command: Command) -> int:
    """`lcm evaluate -m`: run every point that has not run; returns the exit code.

    Raises:
        LcmError: before any point runs, if one cannot be composed and built; after all, if one has failed.
    """
    plugin = named_table(command.own["for"]) if "for" in command.own else None
    multirun = command_line.multirun(command)
    compositions = CompositionCache()
    points = checked_points(multirun.points, compositions)
    folder = _made(multirun, points)
    default = _default(multirun.points, points, compositions)
    runs = points if default is None or default in points else [*points, default]
    is_shown = bool(points[0].config.report)
    for note in _notes_before(points, plugin):
        say(note)
    origins = _Origins()
    incidents = Counter[str]()
    with _alone(folder), SweepLog(points[0].parts["tracking"], folder) as logs:
        _refuse_other_points(folder, runs)
        with counting(incidents):
            todo = _unfinished(runs, points, folder, origins)
        if todo:
            logs.open()
        waiting = set(todo)
        for point in runs:
            if point not in waiting:
                logs.submit(folder / point.name)
        try:
            with progress() as show:
                failed = _run(todo, len(runs), folder, origins, logs, show)
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


def checked_points(wanted: Sequence[tuple[str, ...]], compositions: CompositionCache) -> list[Point]:
    """Compose and build every run of a command, so that a typo in the last one stops the first.

    Returns:
        The points in order, each once.
    Raises:
        LcmError: naming every run that cannot be built.
    """
    common = set(wanted[0]).intersection(*wanted)
    points: dict[str, Point] = {}
    wrong: dict[str, list[str]] = {}
    errors: list[LcmError] = []
    for overrides in wanted:
        label = " ".join(override for override in overrides if override not in common) or " ".join(overrides)
        try:
            point = _built(overrides, label, compositions.composed(overrides), overrides)
            points.setdefault(point.name, point)
        except LcmError as refused:
            error = with_other_reasons(refused, EVALUATE) if isinstance(refused, WrongOverridesError) else refused
            errors.append(error)
            wrong.setdefault(str(error), []).append(label)
    if errors:
        told = (
            message if len(labels) == len(wanted) else f"{message} (in {', '.join(labels)})"
            for message, labels in wrong.items()
        )
        raise LcmError("; ".join(told)) from errors[0]
    if len(points) < len(wanted):
        warn(f"{len(wanted) - len(points)} of {len(wanted)} points are the same as others: each runs once")
    return list(points.values())


def _built(overrides: tuple[str, ...], label: str, config: DictConfig, asked: Sequence[str] | None = None) -> Point:
    """`asked`: overrides that are to be refused where nothing takes them up."""
    plain = building.worked_out(config)
    parts = parts_of(config, asked, plain)  # which tells of a reference that leads nowhere
    assert plain is not None
    return Point(point_name(plain), label, overrides, config, plain, parts)


class _Origins:
    """Where the numbers of points come from; each dataset is read once."""

    def __init__(self) -> None:
        self.datasets: dict[str, Dataset] = {}
        """By what points call theirs."""
        self._content = cache(content_named)
        """Once for all points: they name the same."""

    def of(self, point: Point) -> Origin:
        if point.dataset not in self.datasets:
            self.datasets[point.dataset] = point.parts["dataset"].load()
        return origin_of(point.plain, self.datasets[point.dataset].digest, told_of_external(point.parts), self._content)

    def begun(self, point: Point, kept: PointFolder) -> PointJob:
        """Make the folder of a point ready for what it will hold."""
        kept.begin(self.of(point), point.overrides, point.label)
        return PointJob(point, kept.path, (kept.path / POINT).read_bytes())


def _default(
    wanted: Sequence[tuple[str, ...]], points: Sequence[Point], compositions: CompositionCache
) -> Point | None:
    """What a command describes without what is swept: a point, or a run beside the points, which is then checked too;
    None where points are not measured alike, or nothing is left that can be composed."""
    common = set(wanted[0]).intersection(*wanted)
    swept = {group_of(override) for point in wanted for override in point if override not in common}
    if not swept or not swept.isdisjoint(_DECIDING):
        return None
    overrides = tuple(override for override in wanted[0] if override in common)
    try:
        config = compositions.composed(overrides)
        name = point_name(building.resolved(config))
        return next((one for one in points if one.name == name), None) or _built(overrides, _DEFAULT, config)
    except LcmError as error:
        warn(f"without what is swept nothing can be measured, so points are held against the first: {error}")
        return None


def _notes_before(points: Sequence[Point], plugin: Table | None) -> Iterator[str]:
    """What is known before the first point runs: which points will be equal, and what a plugin can take; a line each.

    Args:
        plugin: of which is asked what it can take.
    """
    some = _with_every_value(points)
    yield from (f"note: {note}" for note in alike_notes({point.label: point.config for point in some}, READ))
    if timing := timed(points[0].parts["measures"]):
        yield (
            f"note: {', '.join(timing)}: timed once for all points that differ in weights, rates and thresholds alone "
            "(settings that may have a fraction)"
        )
    if plugin is not None:
        plain = [point.plain for point in some]
        keys = keys_of_memory([one for point in some for one in point.label.split(" ")], plain[0])
        yield reach_of_swept(plugin, plain, keys)


def _with_every_value(points: Sequence[Point]) -> list[Point]:
    """So many points of a grid as have each of its values once: what a setting leaves without effect shows in them."""
    seen: set[str] = set()
    found = []
    for point in points:
        if not seen.issuperset(values := point.label.split(" ")):
            seen.update(values)
            found.append(point)
    return found


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
            is_up_to_date = kept.is_of(origins.of(point))
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
    if done := len(points) - len(set(todo).intersection(points)):
        rest = "" if todo else ", nothing is left to run; hydra.sweep.dir=FOLDER begins anew in another"
        say(f"{done} of {len(points)} points are finished in {folder}{rest}")
    return todo


def _run(
    todo: Sequence[Point], n: int, folder: Path, origins: _Origins, logs: "SweepLog", show: Progress
) -> dict[str, str]:
    """Run what is left of so many points and log each as it ends; returns why points failed, by name."""
    failed: dict[str, str] = {}
    jobs: list[PointJob] = []
    for point in todo:
        kept = PointFolder(folder / point.name)
        try:
            jobs.append(origins.begun(point, kept))
        except Exception as error:
            failed[point.name] = reason_of(error)
            kept.fail(failed[point.name])
    if not jobs:
        return failed
    before = n - len(jobs)
    show("points", before, n)
    with closing(run_points(jobs[0].point.parts["executor"], jobs, origins.datasets, show)) as ended:
        for done, (job, reason) in enumerate(ended, before + 1):
            if reason is None:
                logs.submit(job.folder)
            else:
                failed[job.point.name] = reason
            show("points", done, n)
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
    told = {} if summary is None else directions_of(point.parts["measures"])
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
    is known by its overrides, wherever the folder lay then; and the default of a smaller grid may be none of a larger
    one's.

    Raises:
        LcmError: saying how many there are.
    """
    names = {point.name for point in runs}
    asked = {_settings(map(redacted, point.overrides)) for point in runs}
    others = []
    for place in (record.parent for record in sorted(folder.glob(f"*/{POINT}")) if record.parent.name not in names):
        told = point_record(place)
        if told.get("label") != _DEFAULT and _settings(told.get("overrides", ())) not in asked:
            others.append(place.name)
    if others:
        raise LcmError(
            f"hydra.sweep.dir={folder} holds {len(others)} points of another sweep, as {others[0]}: name another "
            "folder, or sweep over them too"
        )


def _settings(overrides: Iterable[str]) -> frozenset[str]:
    return frozenset(one for one in overrides if not one.startswith("hydra."))


def _alone(folder: Path) -> AbstractContextManager[object]:
    lock = FileLock(folder / "sweep.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise LcmError(f"{folder}: another process is at work on this sweep; wait, or name another folder") from error
    return lock


class SweepLog:
    """Logs folders beside the work; after the first refusal no more is tried."""

    def __init__(self, tracking: Tracking, folder: Path) -> None:
        self._tracking = tracking
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._opened = ExitStack()
        self._log: Log | None = None
        self._waiting: list[Path] = []
        self._submitted: list[Path] = []
        self._logged: list[Future[None]] = []
        self._refused: str | None = None

    def __enter__(self) -> "SweepLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._thread.shutdown(cancel_futures=error is not None)
        self._opened.close()

    def open(self) -> Log:
        """Make ready for what is to be logged; takes seconds, on another core."""
        if self._log is None:
            self._log = self._opened.enter_context(self._tracking.logger())
        return self._log

    def submit(self, folder: Path) -> None:
        """Log a complete point, unless it is there already; with the points that wait, once they are several."""
        if not self._tracking.has(folder):
            self._submitted.append(folder)
            self._waiting.append(folder)
            self.open()
            if len(self._waiting) >= _AT_ONCE:
                self._log_waiting()

    def cancel(self) -> None:
        """Leave out what has not begun."""
        for future in self._logged:
            future.cancel()

    def finish(self) -> tuple[str | None, str | None]:
        """Log the sweep itself, its points being logged; returns where to look, and what is not there and why."""
        self._log_waiting()
        for future in self._logged:
            future.result()
        missing = sum(not self._tracking.has(folder) for folder in self._submitted)
        where = None
        if self._refused is None:
            try:
                where = (self._tracking.log if self._tracking.has(self._folder) else self.open())(self._folder)
            except TrackingError as error:
                self._refused = str(error)
        return where, None if self._refused is None else f"{missing} points were not logged: {self._refused}"

    def _log_waiting(self) -> None:
        if self._waiting:
            self._logged.append(self._thread.submit(self._tried, self.open(), self._waiting))
            self._waiting = []

    def _tried(self, log: Log, folders: Sequence[Path]) -> None:
        if self._refused is None:
            try:
                log(folders, self._folder)
            except TrackingError as error:
                self._refused = str(error)
