"""Processes on this machine."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from eval.executor.executor import EXPECTED, THREAD_COUNTS, FailedItem, WorkerEnd, end_of
from eval.worker_process import begin_worker, uninterrupted
from lcm.checks import check_range

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Local:
    """Processes on this machine: a new one for each item, so that its memory is given back."""

    workers: int = 2
    """How many at once."""

    def __post_init__(self) -> None:
        check_range(self, "workers", ge=1)

    def map(
        self, task: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Generator[_Result | FailedItem, None, None]:
        spawn = multiprocessing.get_context("spawn")
        waiting = list(enumerate(items))[::-1]
        at_work: dict[Connection, tuple[int, BaseProcess]] = {}
        try:
            while waiting or at_work:
                while waiting and len(at_work) < self.workers:
                    number, item = waiting.pop()
                    ours, theirs = spawn.Pipe(duplex=False)
                    process: BaseProcess = spawn.Process(target=_work, args=(theirs, task, item, os.getpid()))
                    with _one_thread_each(), uninterrupted():
                        process.start()
                    theirs.close()  # else no end is seen when the process dies
                    at_work[ours] = (number, process)
                for connection in wait(list(at_work)):
                    assert isinstance(connection, Connection)
                    number, process = at_work[connection]
                    said = _heard(connection)
                    if not isinstance(said, WorkerEnd):
                        yield said
                        continue
                    del at_work[connection]
                    connection.close()
                    process.join()
                    said.raise_of_machine()
                    failure = said.failure
                    if failure == _NO_WORD:
                        failure = f"its process ended with exit code {process.exitcode}"
                    if failure is not None:
                        yield FailedItem(number, failure)
        finally:
            for connection, (_, process) in at_work.items():
                process.terminate()
                process.join()
                connection.close()


_NO_WORD = ""


def _heard(connection: Connection) -> Any:
    try:
        return connection.recv()
    except EOFError:
        return WorkerEnd(_NO_WORD)


def _work(connection: Connection, task: Callable[[_Item], Iterable[_Result]], item: _Item, caller: int) -> None:
    """One item, in a process of its own. Where nobody listens any more, sending fails and the process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends us
    begin_worker(caller)
    try:
        for result in task(item):
            connection.send(result)
        connection.send(WorkerEnd(None))
    except BrokenPipeError:
        return
    except EXPECTED as error:
        connection.send(end_of(error))


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in THREAD_COUNTS}
    os.environ.update(dict.fromkeys(THREAD_COUNTS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
