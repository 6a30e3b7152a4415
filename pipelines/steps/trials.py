"""The trials of a study as one process makes them, and as the workers of an executor make them side by side."""

import os
import platform
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from eval.executor import Executor, FailedItem
from eval.tuning.sampling import quieten
from eval.tuning.trial_queue import TrialQueue
from eval.tuning.worker import Worker
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from pipelines.steps.interruption import interruption
from pipelines.steps.search import StudySetup
from pipelines.steps.trial import TrialEnd, run_trial
from pipelines.views.output import answering
from pipelines.views.terminal import warn

_WORKERS = "workers"


@contextmanager
def queue_of(search: StudySetup) -> Iterator[TrialQueue]:
    """The queue of a study, for this process."""
    quieten()
    worker = Worker(search.folder / _WORKERS, f"{platform.node()}-{os.getpid()}-{time.time_ns()}")
    with worker:
        queue = TrialQueue(search.settings, search.storage, worker)
        try:
            yield queue
        finally:
            queue.close()


def trials_here(queue: TrialQueue, search: StudySetup, started: float | None = None) -> Generator[TrialEnd, None, None]:
    """Make trials one after another, until there are as many as were asked for, or the time is over.

    Args:
        started: since when the time of the study runs, on the monotonic clock; None = now.
    """
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
    """Have workers make the trials; how each ended, as it ends.

    What a worker that died leaves is made by another, or at last here.

    Raises:
        LcmError: if no worker came to its end.
        MachineFaultError: where a full disk and the like ends a worker.
    """
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
    with answering(is_json=False, is_quiet=True), queue_of(search) as queue:
        try:
            yield from trials_here(queue, search)
        except Exception as error:
            if is_of_machine(error) or isinstance(error, (LcmError, OSError)):
                raise
            raise LcmError(f"{type(error).__name__}: {error} (a defect; executor=none shows where)") from error
