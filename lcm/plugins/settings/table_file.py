"""The table of a plugin's settings, as the file `settings.yaml` in the plugin's folder has it.

A setting has, by its name in the plugin: `is`, what may stand there (`flag`, `text`, `texts`, `share`, `number`, `whole
from 1 to 200`, a list of names, or JSON Schema); `key`, ours, one or several; `convert`, the conversion between the two
values; `default`, or `default_by`, who works it out; and the fields of `Row` under their own names.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any, NamedTuple

import yaml

from lcm.plugins.settings.kinds import FLAG, SHARE, TEXT, TEXTS, number, one_of, whole
from lcm.plugins.settings.table import ABSENT, Choice, Fallback, Key, Row, Table, same

_SCHEMAS = {"flag": FLAG, "text": TEXT, "texts": TEXTS, "share": SHARE}
_BOUNDED = re.compile(r"(number|whole)(?: from (\S+))?(?: to (\S+))?")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Conversion(NamedTuple):
    """Between a value of ours and the plugin's."""

    write: Callable[[Any], Any]
    """Ours -> the plugin's."""
    read: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] = same
    """The plugin's -> ours; by our key where a setting stands for several that differ."""


def table_file(package: str) -> dict[str, Any]:
    """The file of a plugin's settings, as plain data."""
    text = resources.files(package).joinpath("settings.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.load(text, _LOADER)  # noqa: S506 - a safe loader, in C where there is one
    return found


Defaults = Mapping[str, Callable[[str], Callable[[Mapping[str, Any]], Any]]]


def read_tables(
    package: str, conversions: Mapping[str, Conversion], defaults: Defaults | None = None
) -> Mapping[str, Table]:
    """Read the tables of a plugin, by the version of its manifest; arguments as those of `read_table`.

    Of the first everything is known. Of another the file says under `versions` what its manifest takes beyond the
    first (`settings`) and what it refuses of it (`refuses`: names, or what they begin with).
    """
    found, first = table_file(package), read_table(package, conversions, defaults)
    return {first.version: first} | {
        version: _later(first, version, told, found["refused_by_manifest"], conversions, defaults or {})
        for version, told in found.get("versions", {}).items()
    }


def _later(
    first: Table,
    version: str,
    told: Mapping[str, Any],
    untaken: Mapping[str, str],
    conversions: Mapping[str, Conversion],
    defaults: Defaults,
) -> Table:
    """The table of a later version."""
    named = tuple(told["refuses"])
    refused = [row for row in first.rows if row.path.partition(".")[0] in named]
    taken = tuple(_row(path, node, conversions, defaults) for path, node in told["settings"].items())
    reasons = {key: why for key, why in first.reasons.items() if key not in untaken}
    for key, name in untaken.items():
        if name not in told["settings"]:
            reasons[key] = f"the code reads {name}; whether the manifest of {version} takes it is not known here"
    for row in refused:
        reasons |= {key.path: f"the manifest of {version} refuses {row.path}" for key in row.keys}
    return replace(
        first,
        version=version,
        rows=(*(row for row in first.rows if row not in refused), *taken),
        reasons=reasons,
        refuses=tuple(row.path for row in refused),
        taken_from=first.version,
    )


def read_table(package: str, conversions: Mapping[str, Conversion], defaults: Defaults | None = None) -> Table:
    """Read the table of a plugin.

    Args:
        package: the plugin's, which has the file.
        conversions: those that the file names.
        defaults: those that the file names under `default_by`: key of ours -> the default within a document.
    """
    found = table_file(package)
    refused = {
        key: f"the code reads {name}, and the manifest refuses it"
        for key, name in found.get("refused_by_manifest", {}).items()
    }
    return Table(
        name=found["name"],
        plugin=found["plugin"],
        version=found["version"],
        base=tuple(found["base"]),
        rows=tuple(_row(path, node, conversions, defaults or {}) for path, node in found["settings"].items()),
        choices={
            group: tuple(Choice(name, settings) for name, settings in choices.items())
            for group, choices in found["choices"].items()
        },
        fallbacks={group: Fallback(**told) for group, told in found.get("fallbacks", {}).items()},
        reasons=found["reasons"] | refused,
    )


def _row(path: str, node: dict[str, Any], conversions: Mapping[str, Conversion], defaults: Mapping[str, Any]) -> Row:
    keys = node.pop("key", [])
    keys = [keys] if isinstance(keys, str) else keys
    write, read = conversions[node.pop("convert")] if "convert" in node else Conversion(same)
    default_by = node.pop("default_by", None)
    default = node.pop("default", ABSENT) if default_by is None else defaults[default_by](keys[0])
    schema = _schema(node.pop("is"))
    others: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in node.items()}
    return Row(
        path,
        schema,
        default,
        tuple(Key(key, read[key] if isinstance(read, Mapping) else read) for key in keys),
        write,
        **others,
    )


def _schema(told: Any) -> Mapping[str, Any]:
    if isinstance(told, list):
        return one_of(*told)
    if not isinstance(told, str):
        schema: Mapping[str, Any] = told
        return schema
    if told in _SCHEMAS:
        return _SCHEMAS[told]
    kind, *bounds = _BOUNDED.fullmatch(told).groups()  # type: ignore[union-attr]  # our own file
    least, most = (None if bound is None else yaml.safe_load(bound) for bound in bounds)
    return whole(least, most) if kind == "whole" else number(least, most)
