"""Worker processes: they log no keys, and end with their caller, for an orphan would go on asking models, which may
cost money."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import resource_tracker

from lcm.redaction import redact_logs

_LOOK_EVERY_S = 0.5


def begin_worker(caller: int | None, is_parent: bool = True) -> None:
    """What every worker process begins with.

    Args:
        caller: the process that it works for; None = something else ends the worker, as Ray does on other machines.
        is_parent: False = another process of this machine has started it, and the caller is asked for by its id.
    """
    redact_logs()
    if caller is not None:
        _end_with(caller, is_parent)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let no Ctrl-C reach a process that is started here, from its first moment on; ours waits for the end of this."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would end the blocking, were it begun by the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
