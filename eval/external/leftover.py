"""What a memory left running: a process that began a session of its own is in no group that could be ended."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_ROUNDS = 5
"""One that is ended may have begun another meanwhile."""


def end_leftover(home: str) -> None:
    """Kill what still runs of all that was given this home as HOME or TMPDIR; only Linux tells."""
    for _ in range(_ROUNDS):
        if not (found := list(_of(home))):
            return
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)


def _of(home: str) -> Iterator[int]:
    wanted = {f"{name}={home}".encode() for name in ("HOME", "TMPDIR")}
    for place in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if wanted & set((place / "environ").read_bytes().split(b"\0")) and place.name != str(os.getpid()):
                yield int(place.name)
