"""Settings as variables: those of a file, one `NAME=VALUE` a line in the words of a shell, the `LCM_*` ones of this
process, which lossless-claw reads too, and those of the daemon of libravdb memory.
"""

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from lcm import limits
from lcm.errors import LcmError
from lcm.javascript import stringify, trim
from lcm.plugins.settings.tables import ABSENT, TABLES, VERSIONS, Row, Table, at

_OURS = (
    "LCM_ALLOWED_COMMANDS",
    "LCM_ALLOWED_HOSTS",
    "LCM_ALLOWED_KEYS",
    "LCM_CACHE_DIR",
    "LCM_DATASETS_DIR",
    "LCM_GOLDEN_DIR",
    "LCM_MODEL_DIR",
    "LCM_NOMIC_DIR",
    "LCM_PLUGIN_CONFIG",
    "LCM_PLUGIN_DIR",
    "LCM_PLUGIN_HOST",
    "LCM_TEST_SERVER",
    "LCM_TRUST",
    "LCM_UMASK",
    *(limit.variable for limit in limits.ALL),
)
"""Variables of this project, which are no setting of the plugin."""

_ROWS = tuple(row for row in tuple(VERSIONS["lossless_claw"].values())[-1].rows if row.keys or row.no_key)
"""The settings of the newest version, whose variables are those of all; an older name is read with the newer."""
_DEFAULTS = {key.path: row.default for row in _ROWS for key in row.keys}
_ABOVE_ZERO = ("leaf_chunk_tokens", "leaf_min_fanout", "condensed_min_fanout", "condensed_min_fanout_hard")
"""Of compaction, instead of which the plugin takes the default where they are not."""
_WITHOUT_FRACTION: Mapping[str, tuple[float, int | None]] = {
    "fresh_tail_max_tokens": (0, None),
    "summary_prefix_target_tokens": (1, None),
    "max_sweep_passes": (1, 12),
    "fallback_max_tokens": (64, 512),
}
"""Likewise -> the least that it takes, and what it takes for less."""

_LEADING_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LEADING_INT = re.compile(r"[+-]?[0-9]+")
_WHOLE_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+"
)


def variables(table: Table, document: Mapping[str, Any], by_variable: Mapping[str, Any]) -> dict[str, str]:
    """A plugin's settings as its variables; a list with a comma in an item has no variable."""
    found = {}
    for row in table.rows:
        value = by_variable.get(row.path, at(document, row.path))
        if not row.environment or value is ABSENT:
            continue
        if not isinstance(value, list):
            found[row.environment] = value if isinstance(value, str) else json.dumps(value)
        elif not any("," in item for item in value):
            found[row.environment] = ",".join(value)
    return found


def settings(table: Table, text: str, name: str) -> dict[str, Any]:
    """The settings that a file of variables gives, by the plugin's names of them.

    Raises:
        LcmError: if a line is no variable, or one of no setting, or has a value that cannot be read.
    """
    known = {row.environment: row for row in table.rows if row.environment}
    found = {}
    for variable, value in parsed(text, name).items():
        if variable not in known:
            raise LcmError(f"{name}: {variable}: {table.plugin} has no such variable")
        read = from_environment(known[variable], {variable: value})
        if read is None:
            raise LcmError(f"{name}: {variable}={value!r} cannot be read")
        found[known[variable].path] = read
    return found


def rendered(values: Mapping[str, str], what: str) -> str:
    """The text of such a file; `set -a; . FILE; set +a` sets them."""
    return "".join([f"# {what}\n", *(f"{name}={shlex.quote(value)}\n" for name, value in values.items())])


def parsed(text: str, name: str) -> dict[str, str]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise LcmError(f"{name}: {error}") from error
    if wrong := [word for word in words if "=" not in word]:
        raise LcmError(f"{name}: {wrong[0]!r} is no NAME=VALUE")
    return dict(word.split("=", 1) for word in words)


def yaml_overrides(env: Mapping[str, str]) -> dict[str, Any]:
    """The keys of our configuration that the environment sets, by their dotted names.

    Of compaction they are the numbers that the plugin counts with, as `counted_with` says.
    """
    overrides: dict[str, Any] = {}
    for row in _ROWS:
        value = from_environment(row, env)
        if value is not None and row.environment != "TZ":
            if row.outside == "raised":
                value = max(row.schema["minimum"], math.floor(value))
            ours = {key.path: key.read(value) for key in row.keys}
            overrides |= {key: value if one is ABSENT else one for key, one in ours.items()}
    fields = {key.partition(".")[2]: value for key, value in overrides.items() if key.startswith("compaction.")}
    return overrides | {f"compaction.{name}": value for name, value in counted_with(fields).items()}


def counted_with(fields: Mapping[str, Any]) -> dict[str, int | None]:
    """The numbers that the plugin's compaction counts with where its settings hold these; other fields are left out.

    Fractions are rounded down. Chunk and fanouts not above 0 are the default; a fresh tail not above 0 is none;
    a negative depth is unlimited. A bound of the tail's tokens below 0 is none, nor is a prefix below 1; a number of
    passes below 1, and a length of what is cut below 64, are the default.
    """
    found: dict[str, int | None] = {
        name: math.floor(fields[name]) if 0 < fields[name] < math.inf else _DEFAULTS[f"compaction.{name}"]
        for name in _ABOVE_ZERO
        if name in fields
    }
    if (tail := fields.get("fresh_tail_count")) is not None:
        found["fresh_tail_count"] = math.floor(tail) if 0 < tail < math.inf else 0
    if (depth := fields.get("incremental_max_depth")) is not None:
        found["incremental_max_depth"] = -1 if depth < 0 else math.floor(depth) if 0 < depth < math.inf else 0
    for name, (least, default) in _WITHOUT_FRACTION.items():
        if (number := fields.get(name)) is not None:
            found[name] = math.floor(number) if least <= number < math.inf else default
    return found


def variable_of(yaml_key: str) -> str:
    """The environment variable that sets a key of ours."""
    return next(row.environment for row in _ROWS if yaml_key in [key.path for key in row.keys])


def unusable(env: Mapping[str, str]) -> list[str]:
    """What is wrong with `LCM_*` variables, a sentence each: a value that cannot be read, a name that nobody knows."""
    problems = []
    known = {name: row for row in _ROWS for name in (row.environment, row.older_environment) if name}
    for name, text in sorted(env.items()):
        if not name.startswith("LCM_") or name in _OURS:
            continue
        if name not in known:
            near = get_close_matches(name, [*known, *_OURS], n=1, cutoff=0.8)
            problems.append(f"nothing reads {name}{f': is {near[0]} meant?' if near else ''}")
        elif known[name].no_key and known[name].path != "dbPath":
            problems.append(f"{name} has no effect: {known[name].no_key}")
        elif from_environment(known[name], env) is None:
            problems.append(f"{name}={text!r} cannot be read and has no effect")
    return problems


def from_environment(row: Row, env: Mapping[str, str]) -> Any:
    """What a setting's variable says; None where it is not set or cannot be used."""
    schema = row.schema
    kind = "enum" if "enum" in schema else schema.get("items", schema)["type"] + "s" * ("items" in schema)
    read = _FROM_TEXT[row.from_text or kind]
    values = (read(env[name]) for name in (row.environment, row.older_environment) if name in env)
    return next((value for value in values if value is not None and is_usable(row, value)), None)


def is_usable(row: Row, value: Any) -> bool:
    """Whether the plugin takes what was read as given."""
    if not row.from_text and "enum" in row.schema:
        return value in row.schema["enum"]
    return row.outside != "missing" or (float(value).is_integer() and value >= row.schema["minimum"])


def whole_number(text: str) -> float | None:
    """A text that is a number and nothing else."""
    literal = trim(text)
    if not _WHOLE_NUMBER.fullmatch(literal):
        return None
    has_base = literal[:2].lower() in ("0x", "0b", "0o")
    try:
        return _plain(float(int(literal, 0) if has_base else literal))
    except OverflowError:
        return None


def listed(text: str) -> list[str]:
    return [item for item in map(trim, text.split(",")) if item]


def provider(provider: object, model: object) -> dict[str, str] | None:
    if not isinstance(provider, str) or not isinstance(model, str) or not trim(provider) or not trim(model):
        return None
    return {"provider": trim(provider), "model": trim(model)}


def _providers(text: str) -> list[dict[str, str]] | None:
    named = (part.partition("/") for part in listed(text))
    return [one for name, _, model in named if (one := provider(name, model))] or None


def _plain(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


_FROM_TEXT: Mapping[str, Callable[[str], Any]] = {
    "boolean": lambda text: text == "true",
    "enum": lambda text: trim(text).lower() or None,
    "integer": lambda text: int(found[0]) if (found := _LEADING_INT.match(trim(text))) else None,
    "number": lambda text: _plain(float(found[0])) if (found := _LEADING_FLOAT.match(trim(text))) else None,
    "objects": lambda text: None,
    "providers": _providers,
    "string": trim,
    "strings": listed,
    "unless_blank": lambda text: trim(text) or None,
    "unless_false": lambda text: text != "false",
    "whole_number": whole_number,
}
"""By what is read under `from_text`, else by the type of the schema."""


def daemon_environment(config: Mapping[str, Any]) -> dict[str, str]:
    """A configuration of libravdb memory as the variables of its daemon, with their prefix `LIBRAVDB_`; what is blank,
    or a number that the daemon would not take, is left out.

    Source: libravdb memory 1.4.4, whose own mapping nothing calls since the plugin only connects to a daemon.
    """
    found: dict[str, str] = {}
    for row in (row for row in TABLES["libravdb"].rows if row.daemon):  # the newer of two names stands first
        value, kind = at(config, row.path), row.schema["type"]
        if kind == "string":
            is_taken = isinstance(value, str) and bool(value.strip())
        elif kind == "boolean":
            is_taken = isinstance(value, bool)
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            has_zero = row.schema.get("minimum") == 0 and value == 0
            is_taken = is_number and (value > 0 or has_zero or row.path.startswith("gatingWeights."))
        if is_taken:
            found.setdefault(f"LIBRAVDB_{row.daemon}", value if kind == "string" else stringify(value))
    return found
