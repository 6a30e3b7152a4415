"""The arguments of a command, told apart."""

import difflib
import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lcm import consent
from lcm.clock import parse_instant
from lcm.errors import LcmError

_ADDRESS = re.compile(r"[a-z][\w+.-]*://[^\s/?#,\]'\"\\]+", re.IGNORECASE)

RUNS_COMMAND = "external.command"
"""The setting by which a command line allows the program of an external memory; a command that makes a kept run again
takes it for that alone."""
_HOME = re.compile(r"(?<=[=\[,])~(?=/)")
_COMMAND = re.compile(r"\bexternal\.command=(\[[^\]]*\])")


@dataclass(frozen=True, slots=True)
class CommandArguments:
    """What a command works on, its own settings, and overrides of the configuration."""

    words: tuple[str, ...]
    settings: dict[str, str]
    overrides: tuple[str, ...]

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.settings.get(name, "true" if default else "false")
        if value not in ("true", "false"):
            raise LcmError(f"{name} must be true or false, got {value!r}")
        return value == "true"

    def number(self, name: str) -> int | None:
        value = self.settings.get(name)
        if value is None:
            return None
        if not value.isdecimal() or int(value) < 1:
            raise LcmError(f"{name} must be a whole number >= 1, got {value!r}")
        return int(value)

    def instant(self, name: str) -> datetime | None:
        value = self.settings.get(name)
        try:
            return None if value is None else parse_instant(value)
        except ValueError as error:
            raise LcmError(f"{name} must be an ISO 8601 date or instant, got {value!r}") from error

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        value = self.settings.get(name, default)
        if value not in choices:
            raise LcmError(f"unknown {name} {value!r}; choose one of: {', '.join(choices)}")
        return value


def told_apart(arguments: Sequence[str], own: Collection[str] = (), *, is_configured: bool = True) -> CommandArguments:
    """Tell words from settings; a file that is there is a word, though its name hold a `=`.

    Args:
        arguments: of the command line.
        own: keys of the command's own settings.
        is_configured: whether the command takes overrides.
    Raises:
        LcmError: naming a key that is misspelt, or that a command without overrides does not have.
    """
    words, settings, overrides = [], {}, []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or Path(argument).exists():
            words.append(argument)
        elif key in own:
            settings[key] = value
        elif near := difflib.get_close_matches(key, own, n=1, cutoff=0.8):
            raise LcmError(f"no such key: {key!r}; did you mean {near[0]}?")
        elif not is_configured:
            raise LcmError(f"no such key: {key!r}; choose from: {', '.join(own)}")
        else:
            overrides.append(argument)
    return CommandArguments(tuple(words), settings, tuple(overrides))


def at_home(argument: str) -> str:
    """An argument with the user's folder within it for `~`, where no shell puts it."""
    return _HOME.sub(str(Path.home()), argument)


@contextmanager
def consented(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Take what a command line allows into the environment, for this command and its workers; gives the rest of it.

    `trust=[mypkg]` is a word of its own, and so is `trust=[FOLDER]` of a model. An address that stands in an argument
    names a host, and what is named as `api_key_env`, `api_key_file` or `profiles` a key: a configuration that asks for
    others is refused. So it is with a command that no `external.command=[PROGRAM,ARGUMENT]` names.

    Raises:
        LcmError: naming what is no name of a package.
    """
    said: dict[str, set[str]] = {name: consent.allowed(name) for name in (consent.TRUST, consent.KEYS, consent.HOSTS)}
    rest, commands = [], consent.allowed_commands()
    for argument in map(at_home, arguments):
        key, equals, value = argument.partition("=")
        names = [name.strip(" '\"") for name in value.strip("[]").split(",")]
        if key == "trust" and equals and not Path(argument).exists():
            folders = {name for name in names if "/" in name and Path(name).expanduser().is_dir()}
            if wrong := [name for name in names if name not in folders and not _is_theirs(name)]:
                raise LcmError(f"trust={value}: {wrong[0]!r} is no package of yours; write trust=[PACKAGE]")
            said[consent.TRUST].update(names)
            continue
        if key.rpartition(".")[2] in ("api_key_env", "api_key_file", "profiles"):
            said[consent.KEYS].update(names)
        said[consent.HOSTS].update(consent.host_of(address) for address in _ADDRESS.findall(argument))
        commands.update(_commands(argument))
        rest.append(argument)
    before = {name: os.environ.get(name) for name in (*said, consent.COMMANDS)}
    os.environ.update({name: ",".join(sorted(names)) for name, names in said.items() if names})
    if commands:
        os.environ[consent.COMMANDS] = "\n".join(map(shlex.join, sorted(commands)))
    try:
        yield rest
    finally:
        for name, value_before in before.items():
            if value_before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value_before


def _commands(argument: str) -> Iterator[tuple[str, ...]]:
    """The commands that an argument names, as Hydra reads them; what it cannot read is refused when it is composed."""
    for named in _COMMAND.findall(argument):
        from pipelines.config.composition import parsed  # here: importing Hydra takes a third of a second
        from pipelines.config.explanation import CONFIGURATION_ERRORS

        with suppress(*CONFIGURATION_ERRORS):
            command: Any = parsed([f"command={named}"])[0].value()
            yield consent.words_of_command(command)


def _is_theirs(package: str) -> bool:
    return package.isidentifier() and package not in consent.OWN
