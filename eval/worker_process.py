"""Worker processes: they log no keys, and end with their caller, for an orphan would go on asking models, which may
cost money."""

import os
import threading
import time
from functools import cache

from lcm.redaction import redact_logs

_LOOK_EVERY_S = 0.5


def begin_worker(caller: int | None) -> None:
    """What every worker process begins with.

    Args:
        caller: the process that started it; None = something else ends the worker, as Ray does.
    """
    redact_logs()
    if caller is not None:
        _end_with(caller)


@cache  # a worker that does several works for one caller has one watch
def _end_with(caller: int) -> None:
    """End this process, a child of the process `caller`, soon after that one, however it ended.

    A process that has lost its parent is given another: that is seen on every POSIX system, from whichever thread the
    parent had made it, and also where the parent was gone before this was called.
    """
    threading.Thread(target=_watch, args=(caller,), daemon=True).start()


def _watch(caller: int) -> None:
    while os.getppid() == caller:
        time.sleep(_LOOK_EVERY_S)
    os._exit(1)
