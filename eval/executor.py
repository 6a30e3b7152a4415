"""Executors: in which process, and on which machine, the items of a work are done."""

import gc
import importlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from lcm.checks import check_range
from lcm.errors import LcmError
from lcm.faults import MachineFaultError, is_of_machine, told
from lcm.redaction import redact_logs

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

EXPECTED = (LcmError, OSError, ValueError)
"""What a task raises where something is wrong with its item."""
_THREAD_COUNTS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS",
)  # fmt: skip
"""What numeric libraries read when they are imported: a worker each is as many threads as there are cores."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning of what a later version will do
}
_KNOCK_S = 10.0
_CARRIED = "LCM_"
"""Variables of the caller whose names begin so are those of its workers, on whatever machine."""
_LOOK_EVERY_S = 0.5


class FailedItem(NamedTuple):
    """An item of work that its worker did not finish, and why."""

    item: int
    """Its place among the items."""
    reason: str


class Executor(Protocol):
    """An `executor` choice: works on items, each in one place from its beginning to its end.

    Laws: every result of every item is given, those of one item in order; an item that fails gives one `FailedItem` and
    stops no other, but a fault of the machine, such as a full disk, ends all with a `MachineFaultError`; relative paths
    mean the same to a worker as to the caller, where it has the caller's folder; closing what `map` gives, or an error
    in it, ends every worker.
    """

    @property
    def workers(self) -> int:
        """How many items are worked on at once."""
        ...

    def map(
        self, task: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Generator[_Result | FailedItem, None, None]:
        """Give what `task` gives for each item, as it comes.

        Args:
            task: can be pickled, as can items and results; raises one of `EXPECTED` for what is wrong with its item.
            items: what is worked on.
        """
        ...


def shared_out(
    executor: Executor, task: Callable[[Sequence[_Item]], Iterable[_Result]], items: Sequence[_Item]
) -> Generator[tuple[int, _Result | FailedItem], None, None]:
    """Have workers do runs of neighbours, one run each, all of them in one process where there are no workers.

    Neighbours stay together, for an item takes what it has in common with the one before it from that one. A worker
    that dies fails the item that it was at; others take over what it had not begun.

    Args:
        task: gives one result for each of its items, in their order.
    Yields:
        The place of an item, and its result.
    """
    left = list(range(len(items)))
    while left:
        n = min(executor.workers, len(left))
        shares = [left[len(left) * i // n : len(left) * (i + 1) // n] for i in range(n)]
        left, ended = [], [0] * n
        numbered = [(share, [items[place] for place in places]) for share, places in enumerate(shares)]
        with closing(executor.map(partial(_numbered, task), numbered)) as said:
            for one in said:
                if isinstance(one, FailedItem):
                    unended = shares[one.item][ended[one.item] :]
                    for at_work in unended[:1]:  # none where it died behind its last item
                        yield at_work, FailedItem(at_work, one.reason)
                    left += unended[1:]
                else:
                    share, result = one
                    ended[share] += 1
                    yield shares[share][ended[share] - 1], result


def _numbered(
    task: Callable[[Sequence[_Item]], Iterable[_Result]], share: tuple[int, Sequence[_Item]]
) -> Iterator[tuple[int, _Result]]:
    number, items = share
    for result in task(items):
        yield number, result


@dataclass(frozen=True, slots=True)
class NoExecutor:
    """Runs every item in this process, one after the other."""

    @property
    def workers(self) -> int:
        return 1

    def map(
        self, task: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Generator[_Result | FailedItem, None, None]:
        for number, item in enumerate(items):
            try:
                yield from task(item)
            except EXPECTED as error:
                ended = _end_of(error)
                ended.raise_of_machine()
                yield FailedItem(number, str(ended.failure))


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
        yield from _by_workers(_Processes(task), self.workers, items)


@dataclass(frozen=True, slots=True)
class Ray:
    """Processes that Ray places: a new one for each item, so that its memory is given back.

    A worker that dies, or whose machine does, is a `FailedItem`. Workers need lcm where they run.
    """

    address: str | None = None
    """Of a cluster: `auto`, HOST:PORT or ray://HOST:PORT. None = a Ray on this machine, that ends with the work."""
    workers: int = 2
    """How many at once."""
    num_cpus: int = 1
    """Processors that Ray sets aside for each worker, and threads of the numeric libraries in it."""
    runtime_env: dict[str, Any] = field(default_factory=dict)
    """What workers find besides, as Ray has it: env_vars, working_dir, pip ..."""

    def __post_init__(self) -> None:
        check_range(self, "workers", "num_cpus", ge=1)

    def map(
        self, task: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Generator[_Result | FailedItem, None, None]:
        with self._connected() as ray:
            worker = ray.remote(num_cpus=self.num_cpus, max_restarts=0, runtime_env=self._environment())(_RayWorker)
            yield from _by_workers(_Actors(ray, worker, task), self.workers, items)

    def _environment(self) -> dict[str, Any]:
        carried = {name: value for name, value in os.environ.items() if name.startswith(_CARRIED)}
        threads = dict.fromkeys(_THREAD_COUNTS, str(self.num_cpus))
        return {**self.runtime_env, "env_vars": {**threads, **carried, **self.runtime_env.get("env_vars", {})}}

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray, at the cluster; one that this process is connected to already is left as it is.

        Raises:
            LcmError: if Ray is not installed, or the cluster cannot be reached.
        """
        os.environ.update({name: value for name, value in _QUIET.items() if name not in os.environ})
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise LcmError(
                "executor=ray needs Ray, which is not installed: pip install '.[ray]' in the checkout"
            ) from error
        try:
            self._knock()
        except OSError as error:
            raise LcmError(self._unreachable(error)) from error
        if ray.is_initialized():
            yield ray
            return
        logging.getLogger("ray").setLevel(logging.ERROR)
        own: dict[str, Any] = {}
        if self.address is None:
            own = {"num_cpus": self.workers * self.num_cpus, "include_dashboard": False}
        try:
            ray.init(
                self.address or "local",
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.ERROR,
                **own,
            )
        except (ray.exceptions.RayError, OSError, RuntimeError, ValueError, AssertionError) as error:
            raise LcmError(self._unreachable(error)) from error
        try:
            if ray.cluster_resources().get("CPU", 0) < self.num_cpus:
                _log.warning("the Ray cluster has no %d processors for a worker yet: waiting for them", self.num_cpus)
            yield ray
        finally:
            ray.shutdown()

    def _knock(self) -> None:
        """Ray tries for minutes where nobody listens."""
        host, _, port = (self.address or "").removeprefix("ray://").rpartition(":")
        if host and port.isdecimal():
            socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()

    def _unreachable(self, error: BaseException) -> str:
        said = _reason_of(error).partition(". ")[0]
        if self.address is None:
            return f"executor=ray: no Ray can be started on this machine ({said}); choose executor=local"
        return (
            f"executor.address={self.address}: there is no Ray cluster that can be used ({said}); start one with `ray "
            "start --head`, or leave executor.address out for one on this machine"
        )


class _WorkerEnd(NamedTuple):
    """The last message of a worker: why it failed, or None where it did not."""

    failure: str | None
    is_of_machine: bool = False
    """Whether the machine is the reason, as a full disk is, rather than the item."""

    def raise_of_machine(self) -> None:
        """Raises MachineFaultError where the machine is the reason: the other items would meet it too."""
        if self.is_of_machine:
            raise MachineFaultError(self.failure)


class _Pool(Protocol):
    """Workers of one kind, each known by a handle."""

    def begin(self, item: Any) -> Any:
        """Begin a worker on an item; returns its handle."""

    def heard(self, at_work: Sequence[Any]) -> tuple[Any, Any]:
        """Wait until a worker says something; returns its handle, and a result or a `_WorkerEnd`."""

    def end(self, handle: Any) -> None:
        """End a worker, wherever it is."""


def _by_workers(pool: _Pool, workers: int, items: Iterable[Any]) -> Generator[Any, None, None]:
    """Work on items, so many at once."""
    waiting = deque(enumerate(items))
    at_work: dict[Any, int] = {}
    try:
        while waiting or at_work:
            while waiting and len(at_work) < workers:
                number, item = waiting.popleft()
                at_work[pool.begin(item)] = number
            handle, said = pool.heard(list(at_work))
            number = at_work.pop(handle)
            if not isinstance(said, _WorkerEnd):
                at_work[handle] = number  # behind the others: each is heard in its turn
                yield said
                continue
            pool.end(handle)
            said.raise_of_machine()
            if said.failure is not None:
                yield FailedItem(number, said.failure)
    finally:
        for handle in at_work:
            pool.end(handle)


class _Processes:
    """Workers that are children of this process, each known by the connection to it."""

    def __init__(self, task: Callable[[Any], Iterable[Any]]) -> None:
        self._task = task
        self._spawn = multiprocessing.get_context("spawn")
        self._processes: dict[Connection, BaseProcess] = {}

    def begin(self, item: Any) -> Connection:
        ours, theirs = self._spawn.Pipe(duplex=False)
        process: BaseProcess = self._spawn.Process(target=_work, args=(theirs, self._task, item, os.getpid()))
        with _one_thread_each(), uninterrupted():
            process.start()
        theirs.close()  # else no end is seen when the process dies
        self._processes[ours] = process
        return ours

    def heard(self, at_work: Sequence[Connection]) -> tuple[Connection, Any]:
        connection = wait(at_work)[0]
        assert isinstance(connection, Connection)
        process = self._processes[connection]
        try:
            said = connection.recv()
        except EOFError:
            process.join()
            return connection, _WorkerEnd(f"its process ended with exit code {process.exitcode}")
        if isinstance(said, _WorkerEnd):
            process.join()
        return connection, said

    def end(self, handle: Connection) -> None:
        process = self._processes.pop(handle)
        process.terminate()
        process.join()
        handle.close()


def _work(connection: Connection, task: Callable[[_Item], Iterable[_Result]], item: _Item, caller: int) -> None:
    """One item, in a process of its own. Where nobody listens any more, sending fails and the process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends us
    begin_worker(caller)
    try:
        for result in task(item):
            connection.send(result)
        gc.freeze()  # what is left ends with this process: to look through it takes a second
        connection.send(_WorkerEnd(None))
    except BrokenPipeError:
        return
    except EXPECTED as error:
        connection.send(_end_of(error))


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _THREAD_COUNTS}
    os.environ.update(dict.fromkeys(_THREAD_COUNTS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Actors:
    """Workers that Ray places."""

    def __init__(self, ray: Any, worker: Any, task: Callable[[Any], Iterable[Any]]) -> None:
        self._ray = ray
        self._worker = worker
        self._task = ray.put(task)  # sent to each machine once
        self._actors: list[Any] = []
        self._asked: dict[Any, int] = {}
        """What a worker will say next -> its place among the actors."""

    def begin(self, item: Any) -> int:
        caller = (socket.gethostname(), os.getpid())
        self._actors.append(self._worker.remote(self._task, item, os.getcwd(), caller))  # noqa: PTH109  # a str is sent
        self._ask(len(self._actors) - 1)
        return len(self._actors) - 1

    def _ask(self, handle: int) -> None:
        self._asked[self._actors[handle].next.remote()] = handle

    def heard(self, at_work: Sequence[int]) -> tuple[int, Any]:
        (ready,), _ = self._ray.wait(list(self._asked), num_returns=1)
        handle = self._asked.pop(ready)
        try:
            said = self._ray.get(ready)
        except self._ray.exceptions.RayError as error:
            said = _WorkerEnd(_how_it_died(error))
        if not isinstance(said, _WorkerEnd):
            self._ask(handle)
        return handle, said

    def end(self, handle: int) -> None:
        self._ray.kill(self._actors[handle])


class _RayWorker:
    """Works on one item, a result a call: whoever calls says how fast, and Ray's client can."""

    def __init__(
        self, task: Callable[[_Item], Iterable[_Result]], item: _Item, folder: str, caller: tuple[str, int]
    ) -> None:
        host, process = caller
        is_here = socket.gethostname() == host and os.name == "posix"
        begin_worker(process if is_here else None, is_parent=False)
        if Path(folder).is_dir():
            os.chdir(folder)
        self._results = _given(task, item)
        self._elsewhere = "" if socket.gethostname() == host else f" (on {socket.gethostname()})"

    def next(self) -> Any:
        try:
            return next(self._results, _WorkerEnd(None))
        except EXPECTED as error:
            return _end_of(error, self._elsewhere)


def _given(task: Callable[[_Item], Iterable[_Result]], item: _Item) -> Iterator[_Result]:
    """What is wrong from the task's very first step on is wrong with its item."""
    yield from task(item)


def _how_it_died(error: Exception) -> str:
    """Of a worker, or of a task with a defect."""
    _log.debug("a worker failed", exc_info=error)
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return f"{type(cause).__name__}: {_reason_of(cause)} (a defect)"
    return f"its worker died: {str(error).strip().splitlines()[0]}"


def _end_of(error: BaseException, where: str = "") -> _WorkerEnd:
    """The last message of a worker that an error ended."""
    return _WorkerEnd(_reason_of(error) + where, is_of_machine(error))


def _reason_of(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join((told(error) or str(error)).split()) or type(error).__name__


def begin_worker(caller: int | None, is_parent: bool = True) -> None:
    """Begin a worker process: it logs no keys, and ends with its caller, for an orphan would go on asking models, which
    may cost money.

    Args:
        caller: the process that it works for; None = something else ends the worker, as Ray does on other machines.
        is_parent: False = another process of this machine has started it, and the caller is asked for by its id.
    """
    redact_logs()
    if caller is not None:
        _end_with(caller, is_parent)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let no Ctrl-C reach a process that is started here, from its first moment on; ours waits for the end of this.

    Nor does it load the script that a program is run from, which would be run again by that.
    """
    with _scriptless():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        resource_tracker.ensure_running()  # which would end the blocking, were it begun by the first process
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _scriptless() -> Iterator[None]:
    """Hide which file the program is run from, unless it is a module's."""
    main = vars(sys.modules["__main__"])
    script = main.pop("__file__", None) if main.get("__spec__") is None else None
    try:
        yield
    finally:
        if script is not None:
            main["__file__"] = script


@cache  # a worker that does several works for one caller has one watch
def _end_with(caller: int, is_parent: bool) -> None:
    """End this process soon after the process `caller`, however that one ended.

    A child that has lost its parent is given another: that is seen on every POSIX system, from whichever thread the
    parent had made it, and also where the parent was gone before this was called.
    """
    threading.Thread(target=_watch, args=(caller, is_parent), daemon=True).start()


def _watch(caller: int, is_parent: bool) -> None:
    while os.getppid() == caller if is_parent else _is_there(caller):
        time.sleep(_LOOK_EVERY_S)
    os._exit(1)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and does nothing to it
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
