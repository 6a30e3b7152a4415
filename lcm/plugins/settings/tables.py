"""The tables of all plugins' settings, as the file `NAME.yaml` beside this module has each.

A setting has, by its name in the plugin: `is`, what may stand there (`flag`, `text`, `texts`, `objects`, `share`,
`number`, `whole from 1 to 200`, a list of names, or JSON Schema); `key`, ours, one or several; `convert`, how the two
values become each other; `default`, or `default_by`: who works it out, or the setting by whose value it goes; `older`,
names and variables that say it where it is not given; and the fields of `Row` under their own names.

Under `versions` the file says of each later one what its manifest `refuses` of the first (names, or what they begin
with), and whatever else stands over the first: settings (null: gone), choices, fallbacks and reasons one by one, `base`
whole.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import yaml

from lcm.errors import LcmError
from lcm.plugins.settings.conversions import CONVERSIONS, DEFAULTS, Conversion
from lcm.plugins.settings.table import ABSENT, Choice, Fallback, Key, Row, Table, at

_Read = TypeVar("_Read")
_NAMES = ("lancedb_pro", "lossless_claw", "libravdb")
_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "flag": {"type": "boolean"},
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "objects": {"type": "array", "items": {"type": "object"}},
    "share": {"type": "number", "minimum": 0, "maximum": 1},
}
_BOUNDED = re.compile(r"(number|whole)(?: from (\S+))?(?: to (\S+))?")
_HUMP = re.compile(r"(?<!^)(?<!\.)(?=[A-Z])")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def named_table(named: str) -> Table:
    """The table that `NAME` or `NAME@VERSION` names; a version may be cut short where that leaves one.

    Raises:
        LcmError: if there is no such plugin, or no such version of it, naming those that are known.
    """
    name, has_version, version = named.partition("@")
    if name not in VERSIONS:
        raise LcmError(f"no such plugin: {name!r}; choose from: {', '.join(VERSIONS)}")
    if not has_version:
        return TABLES[name]
    known = VERSIONS[name]
    found = [table for one, table in known.items() if one == version or one.startswith(f"{version}.")]
    if len(found) != 1 or not version:
        raise LcmError(f"{TABLES[name].plugin} {version}: no manifest of it is known; choose of: {', '.join(known)}")
    return found[0]


@cache
def _tables(name: str) -> Mapping[str, Table]:
    """The tables of a plugin, by the version of its manifest."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")
    first = yaml.load(text, _LOADER)  # noqa: S506 - a safe loader, in C where there is one
    later = first.pop("versions", {})
    files = [first, *(_later(first, version, told) for version, told in later.items())]
    return {file["version"]: _table(file) for file in files}


def _later(first: dict[str, Any], version: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The file of a later version."""
    refused = [path for path in first["settings"] if path.partition(".")[0] in told.get("refuses", ())]
    kept = {path: node for path, node in first["settings"].items() if path not in refused} | told["settings"]
    reasons = {
        key: f"the manifest of {version} refuses {path}"
        for path in refused
        for key in _listed(first["settings"][path].get("key", []))
    }
    return {
        **first,
        "version": version,
        "base": told.get("base", first["base"]),
        "settings": {path: node for path, node in kept.items() if node is not None},
        "choices": first.get("choices", {}) | told.get("choices", {}),
        "fallbacks": first.get("fallbacks", {}) | told.get("fallbacks", {}),
        "reasons": first["reasons"] | reasons | told.get("reasons", {}),
        "refused_by_manifest": {},
        "refuses": refused,
        "taken_from": told.get("taken_from", ""),
    }


def _table(found: Mapping[str, Any]) -> Table:
    refused = {
        key: f"the code reads {name}, and the manifest refuses it"
        for key, name in found.get("refused_by_manifest", {}).items()
    }
    return Table(
        name=found["name"],
        plugin=found["plugin"],
        version=found["version"],
        base=tuple(found["base"]),
        rows=tuple(row for path, node in found["settings"].items() for row in _rows(path, node, found)),
        choices={
            group: tuple(Choice(name, settings) for name, settings in choices.items())
            for group, choices in found.get("choices", {}).items()
        },
        fallbacks={group: Fallback(**told) for group, told in found.get("fallbacks", {}).items()},
        reasons=found["reasons"] | refused,
        absent=tuple(found.get("absent", ())),
        absent_reason=found.get("absent_reason", ""),
        refuses=tuple(found.get("refuses", ())),
        taken_from=found.get("taken_from", ""),
    )


def _rows(path: str, told: Mapping[str, Any], file: Mapping[str, Any]) -> Iterator[Row]:
    """A setting, and beside it the older names that the manifest takes for it."""
    node = dict(told)
    keys, schema, older = _listed(node.pop("key", [])), _schema(node.pop("is")), node.pop("older", {})
    convert = node.pop("convert", file.get("convert"))
    write, read = CONVERSIONS[convert] if convert else Conversion()
    default = _default(node.pop("default", ABSENT), node.pop("default_by", None), older if keys else {})
    if "variables" in file:
        node.setdefault("environment", file["variables"] + _HUMP.sub("_", path).upper().replace(".", "_"))
    others: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in node.items()}
    found = tuple(Key(key, read[key] if isinstance(read, Mapping) else read) for key in keys)
    yield Row(path, schema, default, found, write, older_environment="".join(older.values()), **others)
    for name, variable in older.items():
        if keys:
            yield Row(name, schema, lambda document, name=name: at(document, name), environment=variable)
        else:
            yield Row(name, schema, no_key=node["no_key"])


def _default(given: Any, told: Any, older: Mapping[str, str]) -> Any:
    """A value, or a function of the document."""
    if isinstance(told, str):
        return DEFAULTS[told]
    if told is not None:
        ((path, by_value),) = told.items()
        return _by_value(path, by_value)
    return _first_of(tuple(older), given) if older else given


def _by_value(path: str, by_value: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Any]:
    """What goes by another setting, whose own default stands first."""
    first = next(iter(by_value))

    def default(document: Mapping[str, Any]) -> Any:
        value = at(document, path)
        return by_value[first if value is ABSENT else value]

    return default


def _first_of(names: tuple[str, ...], default: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda document: next((value for name in names if (value := at(document, name)) is not ABSENT), default)


def _listed(keys: str | list[str]) -> list[str]:
    return [keys] if isinstance(keys, str) else keys


def _schema(told: Any) -> Mapping[str, Any]:
    if isinstance(told, list):
        return {"type": "string", "enum": told}
    if not isinstance(told, str):
        schema: Mapping[str, Any] = told
        return schema
    if told in _SCHEMAS:
        return _SCHEMAS[told]
    kind, *bounds = _BOUNDED.fullmatch(told).groups()  # type: ignore[union-attr]  # our own file
    found = zip(("minimum", "maximum"), bounds, strict=True)
    return {
        "type": "integer" if kind == "whole" else "number",
        **{name: yaml.safe_load(bound) for name, bound in found if bound is not None},
    }


@dataclass(frozen=True)
class _ByName(Mapping[str, _Read]):
    """Read when it is asked for: a command's start waits for the one table that it needs."""

    read: Callable[[str], _Read]

    def __getitem__(self, name: str) -> _Read:
        if name not in _NAMES:
            raise KeyError(name)
        return self.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


VERSIONS: Mapping[str, Mapping[str, Table]] = _ByName(_tables)
"""Plugin, by our name of it -> the versions of its manifest that are known, and their tables, the first one first."""

TABLES: Mapping[str, Table] = _ByName(lambda name: next(iter(_tables(name).values())))
"""The tables of the versions whose code is rebuilt here."""
