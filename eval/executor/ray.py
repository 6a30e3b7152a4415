"""Processes of a Ray cluster."""

import importlib
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from eval.executor.executor import EXPECTED, THREAD_COUNTS, FailedItem, WorkerEnd, end_of, reason_of
from eval.worker_process import begin_worker
from lcm.checks import check_range
from lcm.errors import LcmError

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning of what a later version will do
}
_KNOCK_S = 10.0
_CARRIED = "LCM_"
"""Variables of the caller whose names begin so are those of its workers, on whatever machine."""


@dataclass(frozen=True, slots=True)
class Ray:
    """Processes that Ray places: a new one for each item, so that its memory is given back.

    A worker that dies, or whose machine does, is a `FailedItem`, and its item is not tried again. Workers need lcm
    where they run; what is written there and is to be read here must lie on storage that both see at the same path.
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
            worker = ray.remote(num_cpus=self.num_cpus, max_restarts=0, runtime_env=self._environment())(_Worker)
            waiting = deque(enumerate(items))
            at_work: dict[Any, tuple[int, Any]] = {}
            try:
                while waiting or at_work:
                    while waiting and len(at_work) < self.workers:
                        number, item = waiting.popleft()
                        caller = (socket.gethostname(), os.getpid())
                        actor = worker.remote(task, item, os.getcwd(), caller)  # noqa: PTH109  # a str is sent
                        at_work[actor.next.remote()] = (number, actor)
                    (ready,), _ = ray.wait(list(at_work), num_returns=1)
                    number, actor = at_work.pop(ready)
                    try:
                        said = ray.get(ready)
                    except ray.exceptions.RayError as error:
                        said = WorkerEnd(_how_it_died(error))
                    if not isinstance(said, WorkerEnd):
                        at_work[actor.next.remote()] = (number, actor)
                        yield said
                        continue
                    ray.kill(actor)
                    said.raise_of_machine()
                    if said.failure is not None:
                        yield FailedItem(number, said.failure)
            finally:
                for _, actor in at_work.values():
                    ray.kill(actor)

    def _environment(self) -> dict[str, Any]:
        carried = {name: value for name, value in os.environ.items() if name.startswith(_CARRIED)}
        threads = dict.fromkeys(THREAD_COUNTS, str(self.num_cpus))
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
        told = reason_of(error).partition(". ")[0]
        if self.address is None:
            return f"executor=ray: no Ray can be started on this machine ({told}); choose executor=local"
        return (
            f"executor.address={self.address}: there is no Ray cluster that can be used ({told}); start one with `ray "
            "start --head`, or leave executor.address out for one on this machine"
        )


class _Worker:
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
            return next(self._results, WorkerEnd(None))
        except EXPECTED as error:
            return end_of(error, self._elsewhere)


def _given(task: Callable[[_Item], Iterable[_Result]], item: _Item) -> Iterator[_Result]:
    """What is wrong from the task's very first step on is wrong with its item."""
    yield from task(item)


def _how_it_died(error: Exception) -> str:
    """Of a worker, or of a task with a defect."""
    _log.debug("a worker failed", exc_info=error)
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return f"{type(cause).__name__}: {reason_of(cause)} (a defect)"
    return f"its worker died: {str(error).strip().splitlines()[0]}"
