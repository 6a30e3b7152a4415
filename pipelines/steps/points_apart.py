"""Points in other processes: shared out by an executor, a run of neighbours to each worker."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from omegaconf import DictConfig

from eval.executor.executor import Executor, FailedItem
from eval.executor.local import Local
from eval.executor.none import NoExecutor
from eval.sweep.point_folder import PointFolder
from lcm.errors import LcmError
from lcm.faults import MachineFaultError, is_of_machine
from pipelines.config.composition import CONFIGURATION_ERRORS, explain
from pipelines.steps.point import evaluated


class BuiltPoint(NamedTuple):
    """What a point is made of, until it runs."""

    config: DictConfig
    plain: Mapping[str, Any]
    """The configuration, resolved."""
    parts: Mapping[str, Any]
    """`PARTS` -> component."""


class PointJob(NamedTuple):
    """A point whose folder was begun."""

    folder: Path
    overrides: Sequence[str]
    """Of which its configuration was composed."""
    built: BuiltPoint


def shares_points(executor: Executor, n: int) -> TypeGuard[Local]:
    """Whether so many points are shared out whole: each worker has one at least, and sees the folders they go to.

    Else the workspaces of each are, one point after the other.
    """
    return isinstance(executor, Local) and n >= executor.workers


def run_by(executor: Local, jobs: Sequence[PointJob]) -> None:
    """Have the workers of an executor run points; returns when each has its numbers, or why there are none.

    Neighbours stay together, for a point takes what it has in common with the one before it from that one. A worker
    that dies fails the point that it was at; others take over what it had not begun.

    Raises:
        MachineFaultError: where a full disk and the like ends a worker.
    """
    n = min(executor.workers, len(jobs))
    shares = [jobs[len(jobs) * i // n : len(jobs) * (i + 1) // n] for i in range(n)]
    left: list[PointJob] = []
    with closing(executor.map(run_each, shares)) as messages:
        for message in messages:
            if isinstance(message, FailedItem):
                unended = [job for job in shares[message.item] if not _has_ended(job)]
                for at_work in unended[:1]:  # none where it died behind its last point
                    PointFolder(at_work.folder).fail(message.reason)
                left += unended[1:]
    if left:
        run_by(executor, left)


def _has_ended(job: PointJob) -> bool:
    kept = PointFolder(job.folder)
    return kept.is_complete() or kept.failure() is not None


def run_each(jobs: Sequence[PointJob]) -> Iterator[None]:
    """What a worker does: one point after the other, each whole in this process."""
    for folder, overrides, built in jobs:
        parts = {**built.parts, "executor": NoExecutor()}
        kept = PointFolder(folder)
        with _kept_reason(kept):
            evaluated(built.config, folder, _unseen, parts=parts, overrides=overrides, plain=built.plain)
        yield


@contextmanager
def _kept_reason(kept: PointFolder) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        fail_with(kept, error)


def _unseen(what: str, done: int, total: int) -> None:
    """Progress that nobody is shown: points are counted by their folders."""


def fail_with(kept: PointFolder, error: Exception) -> str:
    """Keep why a point failed; returns that.

    Raises:
        MachineFaultError: where a full disk and the like is the reason, which the other points would meet too.
    """
    reason = explain(error)
    if is_of_machine(error):
        raise MachineFaultError(reason) from error
    if not isinstance(error, (LcmError, ValueError, OSError, *CONFIGURATION_ERRORS)):
        reason = f"{type(error).__name__}: {reason} (a defect; run this point by itself with --debug)"
    if not kept.is_complete():
        kept.fail(reason)
    return reason
