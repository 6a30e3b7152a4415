"""Our configuration as a plugin's, a plugin's as ours, and where two of ours differ, key by key."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lcm.plugins.settings.tables import ABSENT, Choice, InexpressibleError, Row, Table, at, check, misfit, put

_REFERENCE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Difference:
    """One key; of a part of another class, the key of the part."""

    key: str
    ours: Any
    theirs: Any


def reachable(config: Mapping[str, Any], root: str = "memory") -> tuple[str, ...]:
    """The groups that the memory takes up, in the order in which they are first named.

    Args:
        config: with its references.
    """
    found: list[str] = []

    def follow(node: Any) -> None:
        for child in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
            follow(child)
        for name in _REFERENCE.findall(node) if isinstance(node, str) else ():
            if name in config and name not in found:
                found.append(name)
                follow(config[name])

    follow(config[root])
    return tuple(found)


def differences(key: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    """Every key below `key` at which the two differ; what refers to another group is told of there.

    Args:
        ours: a node with its references.
        theirs: likewise.
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        if ours.get("_target_") != theirs.get("_target_"):
            yield Difference(key, _shown(ours), _shown(theirs))
            return
        for name in [*ours, *(name for name in theirs if name not in ours)]:
            yield from differences(f"{key}.{name}", ours.get(name, ABSENT), theirs.get(name, ABSENT))
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield Difference(key, _shown(ours), _shown(theirs))


def _shown(value: Any) -> Any:
    """A value as it is; of a part, the name of its class."""
    if value is ABSENT:
        return "nothing"
    return value["_target_"].rpartition(".")[2] if isinstance(value, Mapping) and "_target_" in value else value


@dataclass(frozen=True, slots=True)
class ExportedSettings:
    """Our configuration as a plugin's settings, and what it has none for."""

    document: dict[str, Any]
    """Its configuration, valid by its schema."""
    by_variable: dict[str, Any] = field(default_factory=dict)
    """Settings that only a variable sets, by the plugin's name of them."""
    refused: dict[str, str] = field(default_factory=dict)
    """Keys of ours whose value the plugin has none for -> why."""
    without_effect: dict[str, str] = field(default_factory=dict)
    """Keys of ours that are written, and why the plugin's code does nothing with them."""


def written(
    table: Table,
    config: Mapping[str, Any],
    referring: Mapping[str, Any],
    choices: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> ExportedSettings:
    """Everything of a configuration that a plugin has a setting for.

    Args:
        config: ours, as plain data, every reference worked out.
        referring: the same with its references.
        choices: group -> choice -> what that choice holds, with its references; at least those that the table names.
    """
    result = ExportedSettings({})
    for group in table.choices:
        if (chosen := _chosen(table, group, referring, choices)) is not None:
            for path, value in chosen.settings.items():
                put(result.document, path, value)
    for row in table.rows:
        if row.keys and is_meant(table, row, referring, choices):
            _write(row, config, result)
        if row.is_required and at(result.document, row.path) is ABSENT and row.default is not ABSENT:
            put(result.document, row.path, row.default)
    return result


def is_meant(table: Table, row: Row, config: Mapping[str, Any], choices: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a setting means anything where these choices are made."""
    if row.needs is not None:
        made = _chosen(table, row.needs[0], config, choices)
        if made is None or made.name != row.needs[1]:
            return False
    return row.when is None or at(config, row.when[0]) == row.when[1]


def _chosen(
    table: Table, group: str, config: Mapping[str, Any], choices: Mapping[str, Mapping[str, Any]]
) -> Choice | None:
    """The choice that the configuration has made; None for one that the plugin cannot make."""
    known, made = table.choices[group], _classes(config.get(group))
    return next((one for one in known if _classes(choices[group][one.name]) == made), None)


def _classes(node: Any) -> Any:
    """What a node is built of, without its settings."""
    if not isinstance(node, Mapping):
        return None
    within = {name: _classes(child) for name, child in node.items() if isinstance(child, Mapping)}
    return node.get("_target_"), {name: child for name, child in within.items() if child != (None, {})}


def _write(row: Row, config: Mapping[str, Any], result: ExportedSettings) -> None:
    key = row.keys[0].path
    ours = at(config, key)
    try:
        value = ABSENT if ours is ABSENT else row.write(ours)
    except InexpressibleError as error:
        result.refused[key] = str(error)
        return
    if value is ABSENT:
        return
    if row.schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if problem := misfit(value, row.schema):
        result.refused[key] = f"{row.path}: {problem}"
        return
    if row.in_manifest:
        put(result.document, row.path, value)
    else:
        result.by_variable[row.path] = value
    if row.switch:
        put(result.document, row.switch, True)
    if row.without_effect:
        result.without_effect[key] = row.without_effect


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
    for path, value in ({row.path: at(document, row.path) for row in table.rows} | dict(by_variable or {})).items():
        if value is not ABSENT:
            put(given, path, value)
    result = ImportedSettings({}, {})
    for group in table.choices:
        _choose(table, group, given, result)
    told = {path for known in table.choices.values() for choice in known for path in choice.settings}
    obeyed = told | {row.switch for row in table.rows}
    for row in table.rows:
        value, default = at(given, row.path), row.default_in(given)
        is_given, is_other = value is not ABSENT, value is not ABSENT and value != default
        if is_given and not row.keys and row.path not in obeyed:
            if is_other:
                result.ignored[row.path] = row.no_key
            continue
        if is_given and row.without_effect:
            result.without_effect[row.path] = row.without_effect
        if is_given and row.needs is not None:
            result.choices.setdefault(*row.needs)
        if row.path in told and row.needs is not None and result.choices.get(row.needs[0]) != row.needs[1]:
            continue  # it says another choice, which has a key of that name too
        if row.switch and not table.by_path[row.switch].is_on(given):
            if is_other:
                result.ignored[row.path] = f"{row.switch} is off"
            continue
        taken = value if is_given else default
        if taken is ABSENT or (row.when is not None and not is_given):
            continue
        if row.when is not None:
            result.values[row.when[0]] = row.when[1]
        for key in row.keys:
            if (ours := key.read(taken)) is not ABSENT:
                result.values[key.path] = ours
        if is_given and row.keys:
            _tell_loss(row, value, given, result)
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


def _choose(table: Table, group: str, given: Mapping[str, Any], result: ImportedSettings) -> None:
    known, rows, fallback = table.choices[group], table.by_path, table.fallbacks.get(group)
    told = sorted({path for choice in known for path in choice.settings})
    stands = {path: rows[path].default_in(given) if at(given, path) is ABSENT else at(given, path) for path in told}
    chosen = next((one for one in known if one.settings and one.settings.items() <= stands.items()), None)
    if chosen is None:
        for path in told:
            if at(given, path) is not ABSENT and not rows[path].keys:  # else a key of another choice takes it
                options = " or ".join(repr(choice.settings[path]) for choice in known if path in choice.settings)
                result.ignored[path] = f"no choice of {group} stands for it, as for {options}"
        return
    result.choices[group] = chosen.name
    if fallback is not None and chosen.name == fallback.choice and at(given, fallback.without) in (ABSENT, ""):
        result.choices[group] = fallback.becomes
        for path, value in chosen.settings.items():
            why = f"{group}={fallback.becomes}: {fallback.reason}"
            result.changed[path] = f"{rows[path].shown(value)} is taken as {why}"


def _tell_loss(row: Row, value: Any, given: Mapping[str, Any], result: ImportedSettings) -> None:
    """Tell of a value that would not be written as it was given."""
    key, because = row.keys[0], f": {row.lossy}" if row.lossy else ""
    ours = key.read(value)
    if ours is ABSENT:
        if value != row.default_in(given):
            result.ignored[row.path] = f"{row.shown(value)} has no value of {key.path}{because}"
        return
    try:
        again = row.write(ours)
    except InexpressibleError as error:
        result.changed[row.path] = f"taken over into {key.path} as {row.shown(value)}, though {error}"
        return
    if again != value:
        taken = "nothing" if again is ABSENT else row.shown(again)
        result.changed[row.path] = f"{row.shown(value)} is taken as {taken} in {key.path}{because}"
