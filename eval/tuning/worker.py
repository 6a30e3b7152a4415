"""A worker: a process at work on a study, and whether it still is."""

import platform
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout


class Worker:
    """Holds a file locked as long as its process lives: the system lets go of it however the process ends."""

    def __init__(self, folder: Path, name: str) -> None:
        """`name` is one that no other worker has or had."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path = (folder / f"{name}.lock").resolve()
        self._lock = FileLock(self._path)

    @property
    def record(self) -> dict[str, str]:
        """What is kept with a trial, to find out later whether this worker is still there."""
        return {"host": platform.node(), "lock": str(self._path)}

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._path.unlink(missing_ok=True)
        self._lock.release()


def is_gone(record: Mapping[str, str]) -> bool:
    """Whether a worker of this machine is no longer there; False for one of another, of which nothing is known."""
    if record["host"] != platform.node():
        return False
    path = Path(record["lock"])
    if not path.exists():
        return True
    try:
        with FileLock(path, timeout=0):
            pass
    except Timeout:
        return False
    path.unlink(missing_ok=True)
    return True
