"""A memory that is a process: it reads calls from its standard input and writes replies to its output, a line each.

It is bounded in time and size, and ended with all that it started. A Python class, named by its dotted path, works in
such a process too, so that it may hang, crash or print without harm.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from eval.external import object_host
from eval.external.session import CallName, FaultError, FaultKind, Limits
from lcm.consent import is_trusted, refused_command, refused_variable, words_of_command
from lcm.errors import LcmError
from lcm.redaction import redacted

_LONGEST_OF_ERRORS = 2000
"""Bytes of a line on standard error."""
_MOST_NOISE = 1000
"""Lines that are no reply, before a process is taken to write nothing else."""
_SHOWN = 80
_END_S = 2.0
"""How long a process may take to end once nothing more will come."""
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")
_PROCESSES = Path("/proc")
_ROUNDS = 5
"""A process that is ended may have begun another meanwhile."""


@dataclass(frozen=True, slots=True)
class Stdio(Limits):
    """Starts a process for every workspace, without a shell and with little of the environment."""

    command: Sequence[str | Mapping[str, Any]] = ()
    """The program and its arguments; {KEY: VALUE} among them is the word KEY=VALUE."""
    environment: Sequence[str] = ()
    """Names of variables that it is given besides PATH and the locale; HOME is an empty folder unless it is named."""

    def __post_init__(self) -> None:
        if isinstance(self.command, str):
            raise ValueError(f"command must be a list of words, got {self.command!r}: write [PROGRAM, ARGUMENT]")
        Limits.__post_init__(self)

    def open(self) -> "LineProcess":
        return LineProcess(allowed_command(self.command), given(self.environment), self)


@dataclass(frozen=True, slots=True)
class PythonObject(Limits):
    """Makes an object for every workspace, by this Python, in a process that hears of nothing else."""

    target: str = ""
    """The dotted path of a class of a package that is trusted: trust=[PACKAGE]."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it is made with: JSON."""
    environment: Sequence[str] = ()
    """As of `Stdio`."""

    @property
    def modules(self) -> Sequence[str]:
        return [self.target.rpartition(".")[0]]

    def open(self) -> "LineProcess":
        package = self.target.partition(".")[0]
        if not package:
            raise LcmError("external.target names no class: write external.target=PACKAGE.MODULE.CLASS")
        if not is_trusted(self.target):
            raise LcmError(
                f"external.target: {self.target!r} is code of {package}: if you trust it to run, say trust=[{package}]"
            )
        command = [sys.executable, "-m", object_host.__name__, self.target, json.dumps(dict(self.settings))]
        places = [Path(one or ".").resolve() for one in sys.path]
        beside = os.pathsep.join(dict.fromkeys(str(place) for place in places if place.is_dir()))
        return LineProcess(command, {"PYTHONPATH": beside, **given(self.environment)}, self)


def allowed_command(asked: Sequence[str | Mapping[str, Any]]) -> tuple[str, ...]:
    """The words of a command that the user has named, and of which there is a program; else LcmError."""
    if not (command := words_of_command(asked)):
        raise LcmError(
            "external.command names no program: write external.command=[PROGRAM,ARGUMENT], as in docs/external.md"
        )
    if why := refused_command(command):
        raise LcmError(f"external.command: {why}")
    if shutil.which(command[0]) is None:
        raise LcmError(f"external.command: there is no program {command[0]!r}: name one, or its whole path")
    return command


def given(names: Sequence[str]) -> Mapping[str, str]:
    """The variables of these names that are set; LcmError where one holds a key that nobody allowed to be read."""
    for name in names:
        if why := refused_variable(name):
            raise LcmError(f"external.environment: {why}")
    return {name: os.environ[name] for name in names if name in os.environ}


class LineProcess:
    """A `Connection` to a process: a call is a line of JSON, and so is its reply, which bears the call's `id`.

    Threads write to it and read from it, so that one that hangs, or does not read, is waited for no longer than the
    limits say.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], limits: Limits) -> None:
        """Start the process, in a session of its own, with a home that is removed with it; no shell reads the command,
        and it is given no more of the environment than the variables and what every program needs."""
        self.noise = 0
        self._limits, self._number = limits, 0
        self._fault: FaultError | None = None
        self._home = tempfile.TemporaryDirectory(prefix="lcm-external-", ignore_cleanup_errors=True)
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        own = {"HOME": self._home.name, "TMPDIR": self._home.name, "PYTHONUNBUFFERED": "1"}
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(  # noqa: S603  # no shell; the command is the user's own
                list(command), stdin=pipe, stdout=pipe, stderr=pipe, env=kept | own | dict(variables),
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._home.cleanup()
            raise FaultError("crashed", f"it does not start: {error.strerror}", is_end=True) from error
        self._calls = Queue[bytes | None]()
        self._lines = Queue[bytes](maxsize=1)  # what is not asked for yet waits in the pipe
        self._last_error = b""
        self._threads = [Thread(target=work, daemon=True) for work in (self._write, self._read, self._note_errors)]
        for thread in self._threads:
            thread.start()

    def call(self, name: CallName, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._fault is not None:
            raise self._fault
        self._number += 1
        self._calls.put(json.dumps({"id": self._number, "call": name, **arguments}).encode() + b"\n")
        try:
            reply = self._reply(self._limits.start_s if self._number == 1 else self._limits.timeout_s)
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
        self._calls.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self._fault else _END_S)
        self._kill()
        end_leftover(self._home.name)
        deadline = time.monotonic() + _END_S
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            with suppress(Empty):
                self._lines.get(timeout=0.01)
        self._home.cleanup()

    def _reply(self, timeout_s: float) -> Mapping[str, Any]:
        deadline, noise, last = time.monotonic() + timeout_s, 0, b""
        while True:
            try:
                last = line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                told = f"no reply within {timeout_s:g} s"
                others = f"{noise:,} lines that are no map of JSON with its id, such as {_shown(last)}"
                raise _end("timed out", f"{told}, {others}" if noise else told) from None
            if not line:
                raise _end("crashed", self._end_told())
            if len(line) > self._limits.most_bytes:
                raise _end("reply too large", f"more than {self._limits.most_bytes:,} bytes")
            try:
                reply = json.loads(line)
            except (ValueError, RecursionError):
                reply = None
            if isinstance(reply, dict) and reply.get("id") == self._number:
                return reply
            if isinstance(reply, dict) and "results" in reply and "id" not in reply:
                told = f"a reply without the id of its call, {self._number}: {_shown(line)}"
                raise FaultError("wrong reply", told, is_end=False)
            noise, self.noise = noise + 1, self.noise + 1
            if noise > _MOST_NOISE:
                raise _end("wrong reply", f"{noise:,} lines and no reply among them, such as {_shown(line)}")

    def _write(self) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError), self._process.stdin as stream:  # the end of its output tells more
            while (line := self._calls.get()) is not None:
                stream.write(line)
                stream.flush()

    def _read(self) -> None:
        """Pass on its lines as they are asked for, and an empty one at the end; what ends without a line end is none.

        Of one that is too long no more is read than tells so.
        """
        assert self._process.stdout
        with self._process.stdout as stream:
            most = self._limits.most_bytes
            while (line := stream.readline(most + 1)).endswith(b"\n") or len(line) > most:
                self._lines.put(line)
        self._lines.put(b"")

    def _note_errors(self) -> None:
        assert self._process.stderr
        with self._process.stderr as stream:
            while line := stream.readline(_LONGEST_OF_ERRORS):
                self._last_error = line.strip() or self._last_error

    def _end_told(self) -> str:
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        self._threads[-1].join(_END_S)
        how = f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"
        last = self._last_error.decode(errors="replace")
        return f"{how}: {redacted(last)[:200]}" if last else how

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def end_leftover(home: str) -> None:
    """Kill what still runs of all that was given this home as HOME or TMPDIR; only Linux tells.

    A process that began a session of its own is in no group that could be ended.
    """
    wanted = {f"{name}={home}".encode() for name in ("HOME", "TMPDIR")}
    for _ in range(_ROUNDS):
        found = list[int]()
        for place in _PROCESSES.glob("[0-9]*"):
            with suppress(OSError):
                if wanted & set((place / "environ").read_bytes().split(b"\0")) and place.name != str(os.getpid()):
                    found.append(int(place.name))
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not found:
            return


def _shown(line: bytes) -> str:
    """A line that was written, as a message may quote it."""
    return repr(redacted(line.rstrip(b"\n").decode(errors="replace"))[:_SHOWN])


def _end(kind: FaultKind, detail: str) -> FaultError:
    return FaultError(kind, detail, is_end=True)
