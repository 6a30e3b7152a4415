"""A process that is written lines and writes lines: bounded in time and size, ended with all that it started."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from eval.external.contract import CallName, FaultError, FaultKind
from eval.external.leftover import end_leftover
from lcm.redaction import redacted

_READ_AT_ONCE = 1 << 16
_KEPT_OF_ERRORS = 2000
"""Bytes of what a process wrote to its standard error last."""
_MOST_NOISE = 1000
"""Lines that are no reply, before a process is taken to write nothing else."""
_SHOWN = 80
"""Characters of a line that is quoted."""
_END_S = 2.0
"""How long a process may take to end once nothing more will come."""
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")


class LineProcess:
    """A `Connection` to a process: a call is a line of JSON, and so is its reply, which bears the call's `id`."""

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], timeout_s: float, start_s: float, most_bytes: int
    ) -> None:
        """Start the process, in a session of its own, with a home that is removed with it.

        Args:
            command: its program and arguments; no shell reads them.
            variables: of the environment, besides those that every program needs.
            timeout_s: for each call but the first.
            start_s: for the first.
            most_bytes: of one reply.
        """
        self.noise = 0
        self._timeouts = (timeout_s, start_s)
        self._most_bytes = most_bytes
        self._number = 0
        self._said, self._errors = bytearray(), bytearray()
        self._fault: FaultError | None = None
        self._home = tempfile.TemporaryDirectory(prefix="lcm-external-", ignore_cleanup_errors=True)
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        own = {"HOME": self._home.name, "TMPDIR": self._home.name, "PYTHONUNBUFFERED": "1"}
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(  # noqa: S603  # no shell; the command is the user's own
                list(command), bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env=kept | own | dict(variables),
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._home.cleanup()
            raise FaultError("crashed", f"it does not start: {error.strerror}", is_end=True) from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._in, self._out, self._err = self._process.stdin, self._process.stdout, self._process.stderr
        self._selector = selectors.DefaultSelector()
        for stream in (self._in, self._out, self._err):
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)

    def call(self, name: CallName, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._fault is not None:
            raise self._fault
        self._number += 1
        line = json.dumps({"id": self._number, "call": name, **arguments}).encode() + b"\n"
        try:
            reply = self._exchanged(memoryview(line), self._timeouts[self._number == 1])
        except FaultError as fault:
            if fault.is_end:
                self._fault = fault
                self._kill()
            raise
        if (error := reply.get("error")) is not None:
            raise FaultError("error", redacted(str(error))[:200], is_end=False)
        return reply

    def close(self) -> None:
        """End the process by the end of its input; then kill what is left of it and of its children."""
        with suppress(OSError, subprocess.TimeoutExpired):
            self._in.close()
            self._process.wait(0 if self._fault else _END_S)
        self._kill()
        end_leftover(self._home.name)
        self._selector.close()
        for stream in (self._out, self._err):
            stream.close()
        self._home.cleanup()

    def _exchanged(self, waiting: memoryview, timeout_s: float) -> Mapping[str, Any]:
        """Write a call, and read until its reply is there."""
        deadline, noise, last = time.monotonic() + timeout_s, 0, b""
        self._selector.register(self._in, selectors.EVENT_WRITE)
        try:
            while True:
                while (line := self._line()) is not None:
                    reply = _json_map(line)
                    if reply is not None and reply.get("id") == self._number:
                        return reply
                    if reply is not None and "results" in reply and "id" not in reply:
                        told = f"a reply without the id of its call, {self._number}: {_shown(line)}"
                        raise FaultError("wrong reply", told, is_end=False)
                    noise, self.noise, last = noise + 1, self.noise + 1, line
                    if noise > _MOST_NOISE:
                        raise _end("wrong reply", f"{noise:,} lines and no reply among them, such as {_shown(line)}")
                left = deadline - time.monotonic()
                if left <= 0:
                    told = f"no reply within {timeout_s:g} s"
                    others = f"{noise:,} lines that are no map of JSON with its id, such as {_shown(last)}"
                    raise _end("timed out", f"{told}, {others}" if noise else told)
                for key, _ in self._selector.select(left):
                    if key.fileobj is self._in:
                        waiting = self._written(waiting)
                    elif key.fileobj is self._err:
                        self._note_errors()
                    else:
                        self._read()
        finally:
            self._stop_writing()

    def _written(self, waiting: memoryview) -> memoryview:
        try:
            waiting = waiting[os.write(self._in.fileno(), waiting) :]
        except BrokenPipeError:  # the end of its output tells more
            waiting = waiting[:0]
        if not waiting:
            self._stop_writing()
        return waiting

    def _stop_writing(self) -> None:
        if self._in in [key.fileobj for key in self._selector.get_map().values()]:
            self._selector.unregister(self._in)

    def _read(self) -> None:
        chunk = os.read(self._out.fileno(), _READ_AT_ONCE)
        if not chunk:
            raise _end("crashed", self._end_told())
        self._said += chunk
        if len(self._said) > self._most_bytes and b"\n" not in self._said[: self._most_bytes]:
            raise _end("reply too large", f"more than {self._most_bytes:,} bytes")

    def _line(self) -> bytes | None:
        end = self._said.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._said[:end])
        del self._said[: end + 1]
        return line

    def _note_errors(self) -> None:
        chunk = os.read(self._err.fileno(), _READ_AT_ONCE)
        if not chunk:
            self._selector.unregister(self._err)
        self._errors = (self._errors + chunk)[-_KEPT_OF_ERRORS:]

    def _end_told(self) -> str:
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        if self._err in [key.fileobj for key in self._selector.get_map().values()]:
            with suppress(BlockingIOError):
                self._note_errors()
        how = f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"
        last = self._errors.decode(errors="replace").strip().splitlines()[-1:]
        return f"{how}: {redacted(last[0])[:200]}" if last else how

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _json_map(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _shown(line: bytes) -> str:
    """A line that was written, as a message may quote it."""
    return repr(redacted(line.decode(errors="replace"))[:_SHOWN])


def _end(kind: FaultKind, detail: str) -> FaultError:
    return FaultError(kind, detail, is_end=True)
