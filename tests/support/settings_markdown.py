"""The table of what a plugin can be told, for people."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lcm.plugins.settings.tables import ABSENT, Row, Table


def settings_table(table: Table, first: Table | None = None) -> str:
    """Every setting with its values, and the key of ours or why there is none; what `first` has alike is left out."""
    if first is not None:
        head, rule, *lines = settings_table(table).split("\n")
        alike = settings_table(first).split("\n")
        return "\n".join([head, rule, *(line for line in lines if line not in alike)])
    has_variables = any(row.environment for row in table.rows)
    columns = ["setting", *(["variable"] if has_variables else []), "values", "default", "here"]
    lines = [_line(columns), _line(["---"] * len(columns))]
    choices = _choices(table)
    for row in sorted(table.rows, key=lambda row: not row.keys and row.path not in choices):
        variable = [f"`{row.environment}`" if row.environment else ""] if has_variables else []
        path = f"`{row.path}`" if row.in_manifest else f"`{row.path}` (variable alone)"
        lines.append(_line([path, *variable, _values(row.schema), _default(row), _here(row, choices)]))
    return "\n".join(lines)


def _choices(table: Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for group, known in table.choices.items():
        for choice in known:
            for path, value in choice.settings.items():
                found.setdefault(path, []).append(f"{_shown(value)}: `{group}={choice.name}`")
    return found


def _here(row: Row, choices: Mapping[str, list[str]]) -> str:
    if row.path in choices:
        return ", ".join(choices[row.path])
    if not row.keys:
        return f"- ({row.no_key})"
    keys = ", ".join(f"`{key.path}`" for key in row.keys)
    if row.when is not None:
        keys += f" where `{row.when[0]}` is `{row.when[1]}`"
    if row.needs is not None:
        keys += f", with `{row.needs[0]}={row.needs[1]}`"
    return f"{keys}; without effect: {row.without_effect}" if row.without_effect else keys


def _values(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if "type" not in schema:
        return "text, or a list of it"
    if schema["type"] == "array":
        return "list of text"
    name = {"number": "number", "integer": "whole", "boolean": "true, false", "string": "text", "object": "object"}
    bounds = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="))
        if key in schema
    ]
    return ", ".join([name[schema["type"]], *bounds])


def _default(row: Row) -> str:
    if row.default is ABSENT:
        return ""
    return "by others" if callable(row.default) else _shown(row.default)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
