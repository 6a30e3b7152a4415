"""A memory that is a process: it reads calls from its standard input and writes replies to its output, a line each."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.external.line_process import LineProcess
from lcm.checks import check_range
from lcm.consent import refused_command, refused_variable, words_of_command
from lcm.errors import LcmError

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Stdio:
    """Starts a process for every workspace, without a shell and with little of the environment."""

    command: Sequence[str | Mapping[str, Any]] = ()
    """The program and its arguments; {KEY: VALUE} among them is the word KEY=VALUE."""
    environment: Sequence[str] = ()
    """Names of variables that it is given besides PATH and the locale; HOME is an empty folder unless it is named."""
    timeout_s: float = 60.0
    """For each call."""
    start_s: float = 120.0
    """For the first call of a workspace, while the program starts."""
    reply_mib: float = 16.0
    """A reply may be no larger."""

    def __post_init__(self) -> None:
        if isinstance(self.command, str):
            raise ValueError(f"command must be a list of words, got {self.command!r}: write [PROGRAM, ARGUMENT]")
        check_range(self, "timeout_s", "start_s", "reply_mib", gt=0)

    @property
    def modules(self) -> Sequence[str]:
        return ()

    def open(self) -> LineProcess:
        command = allowed_command(self.command)
        return LineProcess(command, given(self.environment), self.timeout_s, self.start_s, int(self.reply_mib * _MIB))


def allowed_command(asked: Sequence[str | Mapping[str, Any]]) -> tuple[str, ...]:
    """The words of a command that the user has named, and of which there is a program.

    Raises:
        LcmError: with the remedy.
    """
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
    """The variables of these names that are set.

    Raises:
        LcmError: if one holds a key that the user has not allowed to be read.
    """
    for name in names:
        if why := refused_variable(name):
            raise LcmError(f"external.environment: {why}")
    return {name: os.environ[name] for name in names if name in os.environ}


def beside(folders: Sequence[str]) -> str:
    """Folders as PYTHONPATH has them, those that are there."""
    places = [Path(one or ".").resolve() for one in folders]
    return os.pathsep.join(dict.fromkeys(str(place) for place in places if place.is_dir()))
