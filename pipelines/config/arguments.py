"""The arguments of a command, told apart."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lcm.clock import parse_instant
from lcm.errors import LcmError


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
