"""Points that an executor shares out: to each worker a run of neighbours, which one function in its process runs.

A worker that does not see the caller's folders, as on another machine of a cluster, sends the files of its points.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from omegaconf import DictConfig

from eval.dataset.dataset import Dataset
from eval.executor import Executor, NoExecutor, shared_out
from eval.experiment.experiment import Progress
from eval.run import POINT, config_hash
from eval.study.point import PointFolder
from lcm.errors import LcmError
from lcm.faults import MachineFaultError, is_of_machine
from pipelines.config.explanation import CONFIGURATION_ERRORS, explain
from pipelines.steps.point import evaluated


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One configuration of many, composed and built before the first of them runs."""

    name: str
    """Of its folder."""
    label: str
    """The overrides that tell it from the others."""
    overrides: tuple[str, ...]
    """Of which its configuration was composed."""
    config: DictConfig
    plain: Mapping[str, Any]
    """The configuration, resolved."""
    parts: Mapping[str, Any]
    """`PARTS` -> component."""

    @property
    def dataset(self) -> str:
        """What tells its dataset from those of other points."""
        return config_hash({"dataset": self.plain["dataset"]})


class PointJob(NamedTuple):
    """A point whose folder was begun."""

    point: Point
    folder: Path
    record: bytes
    """The folder's `point.json`."""


class _PointEnd(NamedTuple):
    """How a point ended."""

    reason: str | None
    """Why there are no numbers."""
    files: Mapping[str, bytes] | None = None
    """What is to lie in the folder of the point, where its worker does not see that."""


def run_points(
    executor: Executor, jobs: Sequence[PointJob], datasets: Mapping[str, Dataset], show: Progress
) -> Generator[tuple[PointJob, str | None], None, None]:
    """Run points; each as it ends, and why it failed, which its folder then says too.

    Fewer points than workers run one after another, each with its workspaces shared out.

    Args:
        datasets: by what points call theirs.
    Raises:
        MachineFaultError: where a full disk and the like is the reason, which the other points would meet too.
    """
    if len(jobs) < executor.workers:
        executor = NoExecutor()
    else:
        jobs = [job._replace(point=_alone(job.point)) for job in jobs]
    task = partial(_run_each, datasets, show if isinstance(executor, NoExecutor) else _unseen)
    with closing(shared_out(executor, task, jobs)) as ended:
        for place, end in ended:
            job, kept = jobs[place], PointFolder(jobs[place].folder)
            if isinstance(end, _PointEnd) and end.files:
                kept.put(end.files)
            if end.reason is not None and not kept.is_complete():
                kept.fail(end.reason)
            yield job, end.reason


def _alone(point: Point) -> Point:
    """The point as one process runs it."""
    return replace(point, parts={**point.parts, "executor": NoExecutor()})


def _run_each(datasets: Mapping[str, Dataset], show: Progress, jobs: Sequence[PointJob]) -> Iterator[_PointEnd]:
    """Run the points that one process has been given, each whole."""
    for job in jobs:
        with _place_of(job) as folder:
            reason = None
            try:
                point = job.point
                dataset = datasets[point.dataset]
                evaluated(point.config, folder, show, dataset, point.parts, point.overrides, point.plain)
            except Exception as error:  # told of this point: the others may be sound
                reason = reason_of(error)
            yield _PointEnd(reason, None if folder == job.folder else _files(folder))


@contextmanager
def _place_of(job: PointJob) -> Iterator[Path]:
    """The folder of a point; where that is out of sight, one for as long as the point runs."""
    if (job.folder / POINT).is_file():
        yield job.folder
        return
    with TemporaryDirectory(prefix="lcm-") as place:
        (Path(place) / POINT).write_bytes(job.record)
        yield Path(place)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _unseen(what: str, done: int, total: int) -> None:
    """Progress that nobody is shown: whole points are counted."""


def reason_of(error: Exception) -> str:
    """Why a point has no numbers, in a line.

    Raises:
        MachineFaultError: where a full disk and the like is the reason, which the other points would meet too.
    """
    reason = explain(error)
    if is_of_machine(error):
        raise MachineFaultError(reason) from error
    if not isinstance(error, (LcmError, ValueError, OSError, *CONFIGURATION_ERRORS)):
        reason = f"{type(error).__name__}: {reason} (a defect; run this point by itself with --debug)"
    return reason
