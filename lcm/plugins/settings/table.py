"""The table of a plugin's settings: what each is called there, what may stand there, and which keys of ours it is.

Export, import and the plugin's JSON Schema are all read off this one table.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from lcm.errors import LcmError

ABSENT: Any = object()
"""In the place of a value: the setting is not there, or the plugin has no default of its own."""


class InexpressibleError(ValueError):
    """A value of ours that the plugin has no value for; its text says why."""


def is_secret(path: str) -> bool:
    """Whether what stands at a path is a key of a server, which is never shown."""
    return any(name.lower().endswith("apikey") for name in path.split("."))


def same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Key:
    """A key of our configuration that a setting stands for."""

    path: str
    read: Callable[[Any], Any] = same
    """The plugin's value -> ours; ABSENT leaves the key as it is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One setting in the table of a plugin's settings."""

    path: str
    """As the plugin names it, `retrieval.vectorWeight`."""
    schema: Mapping[str, Any]
    """JSON Schema of its value."""
    default: Any = ABSENT
    """What the plugin takes where it is not set; a function of the whole document where that depends on others."""
    keys: tuple[Key, ...] = ()
    """Ours; the first is exported, all are imported. Empty: `no_key` says why."""
    write: Callable[[Any], Any] = same
    """Our value -> the plugin's; raises InexpressibleError; ABSENT leaves the setting out."""
    no_key: str = ""
    """Why no key of ours stands for it."""
    needs: tuple[str, str] | None = None
    """The choice (group, name) without which the setting means nothing; a file that has the setting makes it."""
    when: tuple[str, Any] | None = None
    """A key of ours and its value without which this setting is not the one that is meant."""
    switch: str = ""
    """A switch of the plugin beside it, which export sets and import obeys: the setting means nothing where it is off.
    """
    absent: bool | None = None
    """Of a switch: whether the code takes it as on where it is not set, whatever its default says; None: as its default
    says."""
    without_effect: str = ""
    """Why the plugin's code does nothing with it, though its manifest has it."""
    lossy: str = ""
    """Why some of its values are read as others, or not at all."""
    environment: str = ""
    """The variable that sets it, above the plugin's configuration."""
    older_environment: str = ""
    """One that counts where the other is not set or cannot be used."""
    from_text: Literal["", "providers", "unless_blank", "unless_false", "whole_number"] = ""
    """How a variable's text is read where the schema does not say it."""
    outside: Literal["", "raised", "missing"] = ""
    """What a number that the schema refuses counts as: rounded down and raised to the least, or as not given."""
    in_manifest: bool = True
    """False: the variable alone can set it."""
    is_required: bool = False

    def default_in(self, document: Mapping[str, Any]) -> Any:
        return self.default(document) if callable(self.default) else self.default

    def is_on(self, document: Mapping[str, Any]) -> bool:
        """Whether a switch is on."""
        value = at(document, self.path)
        if value is ABSENT:
            value = self.default_in(document) if self.absent is None else self.absent
        return value is True

    def shown(self, value: Any) -> str:
        """A value for people; of a secret, three asterisks."""
        return "***" if is_secret(self.path) and value is not ABSENT else json.dumps(value, ensure_ascii=False)

    @property
    def is_whole(self) -> bool:
        return self.schema.get("type") == "integer"


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a group, and what the plugin must be told to make it."""

    name: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fallback:
    """What the plugin does where it is told to make a choice and lacks a setting that this needs."""

    choice: str
    without: str
    """The setting, as the plugin names it."""
    becomes: str
    """The choice that it then is."""
    reason: str


@dataclass(frozen=True, slots=True)
class Table:
    """The table of a plugin's settings, each with the keys of our configuration that it stands for."""

    name: str
    """Ours, as in `system=lancedb_pro`."""
    plugin: str
    """As its host knows it."""
    version: str
    base: tuple[str, ...]
    """The overrides that make our configuration behave as the plugin's code does by default."""
    rows: tuple[Row, ...]
    choices: Mapping[str, Sequence[Choice]] = field(default_factory=dict)
    """Group -> the choices of it that the plugin can make."""
    fallbacks: Mapping[str, Fallback] = field(default_factory=dict)
    """Group -> what the plugin does where it cannot make one of them."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """A key of ours, or what it begins with -> why the plugin cannot be told of it."""
    absent: tuple[str, ...] = ()
    """Groups that are no part of the plugin at all."""
    absent_reason: str = ""
    refuses: tuple[str, ...] = ()
    """Settings of the version that the tables begin with, which the manifest of this one refuses."""
    taken_from: str = ""
    """The version whose settings and code stand for what is not known of this one; empty: all is known."""

    @property
    def by_path(self) -> dict[str, Row]:
        return {row.path: row for row in self.rows}

    def reason(self, key: str) -> str:
        """Why a key cannot be expressed."""
        if key not in self.reasons:
            for row in self.rows:
                if key in [other.path for other in row.keys[1:]]:
                    return f"{row.path} sets it, as it sets {row.keys[0].path}"
        known = [prefix for prefix in self.reasons if key == prefix or key.startswith(f"{prefix}.")]
        return self.reasons[max(known, key=len)] if known else f"{self.plugin} has no setting for it"

    def schema(self) -> dict[str, Any]:
        """JSON Schema (draft 2020-12) of the plugin's configuration; no object takes a key that it does not list."""
        whole: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_object()}
        for row in self.rows:
            if not row.in_manifest:
                continue
            node = whole
            *parents, name = row.path.split(".")
            for parent in parents:
                if row.is_required:
                    node.setdefault("required", []).append(parent)
                node = node["properties"].setdefault(parent, _object())
            if row.is_required:
                node.setdefault("required", []).append(name)
            default = row.default if row.default is not ABSENT and not callable(row.default) else None
            node["properties"][name] = {**row.schema, **({} if default is None else {"default": default})}
        return whole


def _object() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def at(node: Mapping[str, Any], path: str) -> Any:
    """What stands at a dotted path; ABSENT where nothing does."""
    found: Any = node
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return ABSENT
        found = found[name]
    return found


def put(node: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a dotted path, making what is missing on the way."""
    *parents, name = path.split(".")
    for parent in parents:
        node = node.setdefault(parent, {})
    node[name] = value


def check(document: Any, schema: Mapping[str, Any], name: str) -> None:
    """Refuse a configuration that its schema does not allow.

    Raises:
        LcmError: `NAME: retrieval.vectorWeight: 1.4 is greater than the maximum of 1`.
    """
    if problem := misfit(document, schema):
        raise LcmError(f"{name}: {problem}")


def misfit(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a value, with the path at which it is; None where nothing is."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(value))
    if error is None:
        return None
    path = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = list(error.schema["properties"])
        name = next(name for name in error.instance if name not in known)
        near = get_close_matches(str(name), known, n=1)
        message = f"no such setting{f': is {near[0]} meant?' if near else ''}"
        path = f"{path}.{name}" if path else str(name)
    else:
        message = " ".join(error.message.split())
        if is_secret(path):
            message = f"*** is not valid: {error.validator} must be {error.validator_value!r}"
    return f"{path}: {message}" if path else message
