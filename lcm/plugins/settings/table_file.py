"""The table of a plugin's settings, as the file `settings.yaml` in the plugin's folder has it.

A setting has, by its name in the plugin: `is`, what may stand there (`flag`, `text`, `texts`, `share`, `number`, `whole
from 1 to 200`, a list of names, or JSON Schema); `key`, ours, one or several; `convert`, the conversion between the two
values; `default`, or `default_by`, who works it out; and the fields of `Row` under their own names.
"""

import re
from collections.abc import Callable, Mapping
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
    """Read the tables of a plugin, by the version of its manifest.

    Under `versions` the file says of each later one what its manifest `refuses` of the first (names, or what they begin
    with), and whatever else stands over the first: settings, choices, fallbacks and reasons one by one, `base` whole.

    Args:
        package: the plugin's, which has the file.
        conversions: those that the file names.
        defaults: those that the file names under `default_by`: key of ours -> the default within a document.
    """
    first = table_file(package)
    later = first.pop("versions", {})
    files = [first, *(_later(first, version, told) for version, told in later.items())]
    return {file["version"]: _table(file, conversions, defaults or {}) for file in files}


def _later(first: dict[str, Any], version: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The file of a later version."""
    refused = [path for path in first["settings"] if path.partition(".")[0] in told["refuses"]]
    kept = {path: node for path, node in first["settings"].items() if path not in refused}
    reasons = {
        key: f"the manifest of {version} refuses {path}"
        for path in refused
        for key in _named(first["settings"][path].get("key", []))
    }
    return {
        **first,
        "version": version,
        "base": told.get("base", first["base"]),
        "settings": kept | told["settings"],
        "choices": first["choices"] | told.get("choices", {}),
        "fallbacks": first.get("fallbacks", {}) | told.get("fallbacks", {}),
        "reasons": first["reasons"] | reasons | told.get("reasons", {}),
        "refused_by_manifest": {},
        "refuses": refused,
        "taken_from": told.get("taken_from", ""),
    }


def _table(found: Mapping[str, Any], conversions: Mapping[str, Conversion], defaults: Defaults) -> Table:
    refused = {
        key: f"the code reads {name}, and the manifest refuses it"
        for key, name in found.get("refused_by_manifest", {}).items()
    }
    return Table(
        name=found["name"],
        plugin=found["plugin"],
        version=found["version"],
        base=tuple(found["base"]),
        rows=tuple(_row(path, node, conversions, defaults) for path, node in found["settings"].items()),
        choices={
            group: tuple(Choice(name, settings) for name, settings in choices.items())
            for group, choices in found["choices"].items()
        },
        fallbacks={group: Fallback(**told) for group, told in found.get("fallbacks", {}).items()},
        reasons=found["reasons"] | refused,
        refuses=tuple(found.get("refuses", ())),
        taken_from=found.get("taken_from", ""),
    )


def _named(keys: str | list[str]) -> list[str]:
    return [keys] if isinstance(keys, str) else keys


def _row(path: str, told: Mapping[str, Any], conversions: Mapping[str, Conversion], defaults: Mapping[str, Any]) -> Row:
    node = dict(told)
    keys = _named(node.pop("key", []))
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
