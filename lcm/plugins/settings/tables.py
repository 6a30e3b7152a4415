"""The table of a plugin's settings: what each is called there, what may stand there, and which keys of ours it is.

Export, import and the plugin's JSON Schema are all read off this one table, which the file `NAME.yaml` beside this
module holds. A setting has there, by its name in the plugin: `is`, what may stand there (`flag`, `text`, `texts`,
`objects`, `share`, `number`, `whole from 1 to 200`, a list of names, or JSON Schema); `key`, ours, one or several;
`convert`, how the two values become each other; `default`, or `default_by`: who works it out, or the setting by whose
value it goes; `older`, names and variables that say it where it is not given; and the fields of `Row` under their own
names.

Under `versions` the file says of each later one what its manifest `refuses` of the first (names, or what they begin
with), and whatever else stands over the first: settings (null: gone), choices, fallbacks and reasons one by one, `base`
whole.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple, TypeVar

from lcm.encoding import from_yaml
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
    daemon: str = ""
    """The variable of the plugin's daemon that says the same."""
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


_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
_MOST_CANDIDATES = 20
_LEAST_COARSE = 8
_BY_LEAF_CHUNK = 0
"""Of `session.bootstrap_max_tokens`: the bound that the plugin works out where none is given."""
_EVICTIONS = {True: "relevance", False: "chronological"}


class Conversion(NamedTuple):
    """Between a value of ours and the plugin's."""

    write: Callable[[Any], Any] = same
    """Ours -> the plugin's."""
    read: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] = same
    """The plugin's -> ours; by our key where a setting stands for several that differ."""


def milliseconds(seconds: float | None) -> float:
    """A plugin counts milliseconds where our key counts seconds."""
    if seconds is None:
        raise InexpressibleError("the plugin always has a bound of time")
    return tidy(seconds * 1000)


def tidy(value: float) -> float:
    """A whole number without its fraction; what arithmetic left beyond twelve digits is none of ours."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if float(rounded).is_integer() else rounded


def _variable(placeholder: Any) -> Any:
    found = _PLACEHOLDER.fullmatch(placeholder) if isinstance(placeholder, str) else None
    return found[1] if found else ABSENT  # a key itself is never read into a configuration


def _unless_null(value: Any) -> Any:
    return ABSENT if value is None else value


def _trimmed(text: str) -> str:
    """The plugin trims what it reads."""
    if text != text.strip():
        raise InexpressibleError("the plugin trims its settings: take away the blanks at the ends")
    return text


def _pool(size: int) -> int:
    if size > _MOST_CANDIDATES:
        raise InexpressibleError("the plugin's store gives no more than 20, whatever candidatePoolSize says")
    return size


def _captures_assistant(roles: Any) -> bool:
    if set(roles) == {"user"}:
        return False
    if set(roles) == {"user", "assistant"}:
        return True
    raise InexpressibleError("captureAssistant chooses between [user] and [user, assistant]")


def _roots(paths: list[str]) -> list[str]:
    if any(character in path for path in paths for character in "*?["):
        raise InexpressibleError("the plugin's roots are folders, no globs")
    return paths


def _coarse(top_k: float) -> int:
    """How deep the first of two passes goes."""
    return math.floor(max(2 * top_k, _LEAST_COARSE))


_DEPTHS: Mapping[str, Callable[[float], int]] = {
    "fusion.k1": _coarse,
    "fusion.k2": math.floor,
    "source.session_pool_size": math.ceil,
    "source.guidance_pool_size": _coarse,
    "source.durable_pool_size": lambda top_k: math.ceil(top_k / 2),
    "source.global_pool_size": lambda top_k: math.ceil(top_k / 4),
    "source.authored_pool_size": _coarse,
    "source.dream_pool_size": math.ceil,
    "ranking.stages.recovery.session_k": lambda top_k: max(math.ceil(top_k), 4),
    "ranking.stages.recovery.user_k": lambda top_k: max(4 * math.ceil(top_k), 8),
}
"""What follows from how many documents are wanted."""

CONVERSIONS: Mapping[str, Conversion] = {
    "captures_assistant": Conversion(_captures_assistant, lambda is_on: ["user", "assistant"] if is_on else ["user"]),
    "depth": Conversion(same, _DEPTHS),
    "descriptions": Conversion(
        lambda told: {name: {} if text is None else {"description": text} for name, text in told.items()},
        lambda entries: {name: entry.get("description") for name, entry in entries.items()},
    ),
    "eviction": Conversion(lambda eviction: eviction == _EVICTIONS[True], _EVICTIONS.__getitem__),
    "leaf_chunk": Conversion(lambda tokens: ABSENT if tokens == _BY_LEAF_CHUNK else _unless_null(tokens)),
    "milliseconds": Conversion(milliseconds, lambda milliseconds: milliseconds / 1000),
    "model": Conversion(_trimmed, lambda model: model or ABSENT),  # no name leaves the model to the host
    "neighbours": Conversion(lambda per_result: per_result or ABSENT),
    "pool_size": Conversion(_pool, lambda size: min(size, _MOST_CANDIDATES)),
    "roots": Conversion(_roots),
    # The plugin's host puts the value of a variable in the place of `${NAME}`, so that no key is ever written down.
    "opposite": Conversion(operator.not_, operator.not_),
    "secret": Conversion(lambda variable: ABSENT if variable is None else f"${{{variable}}}", _variable),
    "stage": Conversion(lambda stage: stage is not None, lambda is_on: ABSENT if is_on else None),
    "trimmed": Conversion(_trimmed),
    "unless_null": Conversion(_unless_null),
    "words": Conversion(_unless_null, lambda items: [item.strip() for item in items if item.strip()]),
}
"""By the name that a file says under `convert`."""


DEFAULTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "coarse": lambda document: _coarse(document.get("topK", 8)),
    "leaf_chunk": lambda _: _BY_LEAF_CHUNK,
    "second": lambda document: math.floor(document.get("topK", 8)),
    "unbounded": lambda _: None,  # no bound is a value of ours, and no value of the plugin's
}
"""By the name that a file says under `default_by`: what the plugin takes within a document that does not set it."""


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
    first = from_yaml(text)
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
    if told is not None:  # by the value of another setting, whose own default stands first
        ((path, by_value),) = told.items()
        first = next(iter(by_value))
        return lambda document: by_value[first if at(document, path) is ABSENT else at(document, path)]
    if older:
        return lambda document: next((one for name in older if (one := at(document, name)) is not ABSENT), given)
    return given


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
        **{name: from_yaml(bound) for name, bound in found if bound is not None},
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
