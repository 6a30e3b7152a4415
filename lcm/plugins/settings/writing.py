"""Our configuration as a plugin's: its configuration file, and the variables beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lcm.plugins.settings.table import ABSENT, Choice, InexpressibleError, Row, Table, at, misfit, put


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
    for group, known in table.choices.items():
        chosen = chosen_of(table, group, referring, choices)
        if chosen is not None:
            for path, value in _choice(known, chosen).settings.items():
                put(result.document, path, value)
    for row in table.rows:
        if row.keys and is_meant(table, row, referring, choices):
            _write(row, config, result)
        elif row.is_required and row.default is not ABSENT:
            put(result.document, row.path, row.default)
    return result


def chosen_of(
    table: Table,
    group: str,
    config: Mapping[str, Any],
    choices: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> str | None:
    """Which of the choices that the plugin can make the configuration has made; None for another."""
    node = config.get(group)
    for choice in table.choices[group]:
        if classes(node) == classes(choices[group][choice.name]):
            return choice.name
    return None


def classes(node: Any) -> Any:
    """What a node is built of, without its settings."""
    if not isinstance(node, Mapping):
        return None
    within = {name: classes(child) for name, child in node.items() if isinstance(child, Mapping)}
    return node.get("_target_"), {name: child for name, child in within.items() if _has_class(child)}


def is_meant(table: Table, row: Row, config: Mapping[str, Any], choices: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a setting means anything where these choices are made."""
    if row.needs is not None and chosen_of(table, row.needs[0], config, choices) != row.needs[1]:
        return False
    return row.when is None or at(config, row.when[0]) == row.when[1]


def _write(row: Row, config: Mapping[str, Any], result: ExportedSettings) -> None:
    key = row.keys[0].path
    ours = at(config, key)
    if ours is ABSENT:
        return
    try:
        value = row.write(ours)
    except InexpressibleError as error:
        result.refused[key] = str(error)
        return
    if value is ABSENT:
        return
    if row.is_whole and isinstance(value, float) and value.is_integer():
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


def _choice(known: Any, name: str) -> Choice:
    found: Choice = next(choice for choice in known if choice.name == name)
    return found


def _has_class(skeleton: Any) -> bool:
    return skeleton is not None and (skeleton[0] is not None or bool(skeleton[1]))
