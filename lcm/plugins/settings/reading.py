"""A plugin's configuration as ours: the choices that it makes, and the values of keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lcm.plugins.settings.table import ABSENT, Choice, InexpressibleError, Row, Table, at, check, put


@dataclass(frozen=True, slots=True)
class ImportedSettings:
    """A plugin's settings as choices and values of our configuration."""

    choices: dict[str, str]
    """Group -> choice, beside those of the table's base."""
    values: dict[str, Any]
    """Key -> value; a key that the choices do not have means nothing."""
    ignored: dict[str, str] = field(default_factory=dict)
    """Settings that no key or value of ours stands for -> why."""
    changed: dict[str, str] = field(default_factory=dict)
    """Settings that were read as another value than was given -> which, and why."""
    without_effect: dict[str, str] = field(default_factory=dict)
    """Settings that the plugin's code does nothing with -> why."""


def read(table: Table, document: Mapping[str, Any], by_variable: Mapping[str, Any] | None = None) -> ImportedSettings:
    """Everything of a plugin's configuration that we have a key for; what is not set is the plugin's default.

    Args:
        by_variable: settings that variables give, by the plugin's names of them; they stand above the document.
    Raises:
        LcmError: if the document is not valid.
    """
    check(document, table.schema(), table.plugin)
    given: dict[str, Any] = {}
    for source in (_leaves(table, document), by_variable or {}):
        for path, value in source.items():
            put(given, path, value)
    result = ImportedSettings({}, {})
    rows = table.by_path
    for group, known in table.choices.items():
        _choose(table, group, known, given, result)
    for row in table.rows:
        value = at(given, row.path)
        is_given = value is not ABSENT
        if is_given and not row.keys and not _is_obeyed(table, row.path):
            if value != row.default_in(given):
                result.ignored[row.path] = row.no_key
            continue
        if is_given and row.without_effect:
            result.without_effect[row.path] = row.without_effect
        if is_given and row.needs is not None:
            result.choices.setdefault(*row.needs)
        if row.switch and not rows[row.switch].is_on(given):
            if is_given and value != row.default_in(given):
                result.ignored[row.path] = f"{row.switch} is off"
            continue
        _read(row, value if is_given else row.default_in(given), is_given, given, result)
    return result


def applied(config: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Set the values whose keys the configuration has, in place; a whole number stays a fraction where one stood."""
    for path, value in values.items():
        before = at(config, path)
        if before is ABSENT:
            continue
        is_count = isinstance(value, int) and not isinstance(value, bool)
        put(config, path, float(value) if isinstance(before, float) and is_count else value)
    return config


def _choose(
    table: Table, group: str, known: Sequence[Choice], given: Mapping[str, Any], result: ImportedSettings
) -> None:
    rows = table.by_path
    told = {path for choice in known for path in choice.settings}
    stands = {path: _effective(rows[path], given) for path in told}
    for choice in known:
        if choice.settings and all(stands[path] == value for path, value in choice.settings.items()):
            result.choices[group] = _made(table, group, choice, given, result)
            return
    for path in sorted(told):
        if at(given, path) is not ABSENT:
            options = " or ".join(repr(choice.settings[path]) for choice in known if path in choice.settings)
            result.ignored[path] = f"no choice of {group} stands for it, as for {options}"


def _made(table: Table, group: str, choice: Choice, given: Mapping[str, Any], result: ImportedSettings) -> str:
    """The choice that a configuration really makes, being told to make another; tells where they differ."""
    fallback = table.fallbacks.get(group)
    if fallback is None or choice.name != fallback.choice or at(given, fallback.without) not in (ABSENT, ""):
        return choice.name
    for path, value in choice.settings.items():
        shown = table.by_path[path].shown(value)
        result.changed[path] = f"{shown} is taken as {group}={fallback.becomes}: {fallback.reason}"
    return fallback.becomes


def _effective(row: Row, given: Mapping[str, Any]) -> Any:
    value = at(given, row.path)
    return row.default_in(given) if value is ABSENT else value


def _is_obeyed(table: Table, path: str) -> bool:
    """Whether a setting without a key decides a choice, or whether others count."""
    if any(path == row.switch for row in table.rows):
        return True
    return any(path in choice.settings for known in table.choices.values() for choice in known)


def _read(row: Row, value: Any, is_given: bool, given: Mapping[str, Any], result: ImportedSettings) -> None:
    if value is ABSENT or (row.when is not None and not is_given):
        return
    if row.when is not None:
        result.values[row.when[0]] = row.when[1]
    for key in row.keys:
        ours = key.read(value)
        if ours is not ABSENT:
            result.values[key.path] = ours
    if is_given and row.keys:
        _tell_loss(row, value, given, result)


def _tell_loss(row: Row, value: Any, given: Mapping[str, Any], result: ImportedSettings) -> None:
    """Tell of a value that would not be written as it was given."""
    key = row.keys[0]
    ours = key.read(value)
    if ours is ABSENT:
        if value != row.default_in(given):
            result.ignored[row.path] = f"{row.shown(value)} has no value of {key.path}{_because(row.lossy)}"
        return
    try:
        again = row.write(ours)
    except InexpressibleError as error:
        result.changed[row.path] = f"taken over into {key.path} as {row.shown(value)}, though {error}"
        return
    if again != value:
        taken = "nothing" if again is ABSENT else row.shown(again)
        result.changed[row.path] = f"{row.shown(value)} is taken as {taken} in {key.path}{_because(row.lossy)}"


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _leaves(table: Table, document: Mapping[str, Any]) -> dict[str, Any]:
    found = {row.path: at(document, row.path) for row in table.rows}
    return {path: value for path, value in found.items() if value is not ABSENT}
