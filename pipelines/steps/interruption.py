"""Commands that are asked to end, by Ctrl-C or by SIGTERM: what they are ended by, and with which exit code."""

import signal

INTERRUPTED, TERMINATED = 130, 143


class _Termination(KeyboardInterrupt):
    """SIGTERM, wherever Ctrl-C would be."""


def end_as_interrupted() -> None:
    """Let SIGTERM clear up as Ctrl-C does; a second one does not wait for that."""
    signal.signal(signal.SIGTERM, _end)


def _end(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise _Termination


def interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """What ended a command, though this went wrong in the clearing up after it, as Hydra's may."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def exit_code(error: KeyboardInterrupt) -> int:
    return TERMINATED if isinstance(error, _Termination) else INTERRUPTED
