"""The plugin's own settings, read as leniently as the plugin reads them, and the keys of ours that they stand for.

An environment variable wins over the plugin's configuration, and that over the default.

Source: lossless-claw 0.6.3 and 0.15.3.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from lcm import limits
from lcm.javascript import is_finite_number, trim
from lcm.plugins.settings.table_file import table_file

Kind = Literal[
    "enabled",
    "flag",
    "list",
    "float",
    "int",
    "strict_int",
    "text",
    "path",
    "timezone",
    "choice",
    "objects",
    "providers",
]

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


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the plugin."""

    name: str
    """As the resolved configuration calls it."""
    plugin_keys: tuple[str, ...]
    """In the plugin's configuration, dotted; the first that is usable wins."""
    environment: str
    """The variable; empty = there is none."""
    kind: Kind
    default: Any
    yaml_keys: tuple[str, ...] = ()
    """Of our configuration, which each get the value; empty: `host_only` says why."""
    host_only: str = ""
    is_milliseconds: bool = False
    """Our keys count seconds."""
    least: float | None = None
    """What the plugin's manifest asks for; resolution itself does not."""
    most: float | None = None
    in_manifest: bool = True
    manifest_aliases: tuple[str, ...] = ()
    """Those of the older keys that the manifest takes, too."""
    older_environment: str = ""
    """A variable that counts where the other is not set or cannot be used."""
    options: tuple[str, ...] = ()
    """Of a choice; anything else is the default."""
    whole_from: float = -math.inf
    """A number that is not whole, or less, counts as missing, unless this is -inf."""
    floor_from: float = -math.inf
    """What is used is rounded down and at least this, unless it is -inf."""
    within: tuple[float, float] = (-math.inf, math.inf)
    """What is used lies between these."""

    @property
    def environments(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.environment, self.older_environment)))

    def yaml_value(self, value: Any) -> Any:
        """What our keys say where the plugin uses a value."""
        if self.name == "prompt_aware_eviction":
            return EVICTIONS[value]
        return value / 1000 if self.is_milliseconds else value

    def is_usable(self, value: Any) -> bool:
        if self.kind == "choice":
            return value in self.options
        return self.whole_from == -math.inf or (float(value).is_integer() and value >= self.whole_from)

    def used(self, value: Any) -> Any:
        """What the plugin works with where this is given."""
        if self.options and value not in self.options:
            return self.default
        if not is_finite_number(value):
            return value
        if self.floor_from > -math.inf:
            return max(int(self.floor_from), math.floor(value))
        least, most = self.within
        return min(most, max(least, value))


EVICTIONS = {True: "relevance", False: "chronological"}
"""What `promptAwareEviction` says, in the words of `assembly.eviction`."""


_TUPLES = ("yaml_keys", "manifest_aliases", "options", "within")


def _setting(plugin_key: str, fields: dict[str, Any]) -> Setting:
    name = re.sub(r"(?<!^)(?<![.])(?=[A-Z])", "_", plugin_key).lower()
    keys = (plugin_key, *fields.pop("aliases", ()))
    told = {"name": name, "environment": f"LCM_{name.upper().replace('.', '_')}", "default": None} | fields
    listed = {name: tuple(told[name]) for name in _TUPLES if name in told}
    return Setting(plugin_keys=keys, **{**told, **listed})


FILE: Mapping[str, Any] = table_file("lcm.plugins.lossless_claw")
"""`settings.yaml` beside this module: by a setting's name in the plugin, the fields of `Setting`."""


def _settings(fields_by_key: Mapping[str, Any]) -> tuple[Setting, ...]:
    return tuple(_setting(key, dict(fields)) for key, fields in fields_by_key.items() if fields is not None)


SETTINGS = _settings(FILE["settings"])
"""The table of all settings of the version that is rebuilt first."""
VERSIONS: Mapping[str, tuple[Setting, ...]] = {FILE["version"]: SETTINGS} | {
    version: _settings({**FILE["settings"], **told["settings"]}) for version, told in FILE["versions"].items()
}
"""By version, the first one first."""
NEWEST = tuple(VERSIONS.values())[-1]
"""The table of the newest version, whose variables are those of all."""


def resolve(
    env: Mapping[str, str],
    plugin: Mapping[str, Any],
    home: Path | None = None,
    timezone: str = "UTC",
    settings: Sequence[Setting] = SETTINGS,
) -> dict[str, Any]:
    """What the plugin works with.

    Args:
        env: environment variables.
        plugin: its configuration, under its own key names; whatever cannot be used counts as missing.
        home: where the default database lies; None: the user's.
        timezone: the machine's.
        settings: those of a version.
    Returns:
        A value for each setting by its dotted name; one without a default only where it was given.
    """
    resolved = {}
    for setting in settings:
        value = from_environment(setting, env)
        if value is None:
            value = _from_plugin(setting, plugin)
        resolved[setting.name] = setting.used(setting.default if value is None else value)
    state = trim(env.get("OPENCLAW_STATE_DIR", "")) if settings is not SETTINGS else ""
    folder = Path(state) if state else (home or Path.home()) / ".openclaw"
    for name, file in (("database_path", "lcm.db"), ("large_files_dir", "lcm-files")):
        if name in resolved and resolved[name] is None:
            resolved[name] = str(folder / file)
    chunk = resolved["leaf_chunk_tokens"]
    if "dynamic_leaf_chunk_tokens.max" in resolved:
        most = resolved["dynamic_leaf_chunk_tokens.max"]
        resolved["dynamic_leaf_chunk_tokens.max"] = max(chunk, math.floor(2 * chunk) if most is None else most)
    if resolved["bootstrap_max_tokens"] is None:
        from lcm.memory.session.rules import tokens_by_leaf_chunk  # brings in what a misspelt key need not wait for

        resolved["bootstrap_max_tokens"] = tokens_by_leaf_chunk(resolved["leaf_chunk_tokens"])
    if from_environment(_BY_NAME["timezone"], env) is None and _from_plugin(_BY_NAME["timezone"], plugin) is None:
        resolved["timezone"] = timezone
    return {name: value for name, value in resolved.items() if value is not None}


def yaml_overrides(env: Mapping[str, str]) -> dict[str, Any]:
    """The keys of our configuration that the environment sets, by their dotted names.

    Of compaction they are the numbers that the plugin counts with, as `counted_with` says.
    """
    overrides: dict[str, Any] = {}
    for setting in NEWEST:
        value = from_environment(setting, env)
        if value is not None and setting.environment != "TZ":
            overrides |= dict.fromkeys(setting.yaml_keys, setting.yaml_value(setting.used(value)))
    fields = {key.partition(".")[2]: value for key, value in overrides.items() if key.startswith("compaction.")}
    return overrides | {f"compaction.{name}": value for name, value in counted_with(fields).items()}


def counted_with(fields: Mapping[str, Any]) -> dict[str, int | None]:
    """The numbers that the plugin's compaction counts with where its settings hold these; other fields are left out.

    Fractions are rounded down. Chunk and fanouts not above 0 are the default; a fresh tail not above 0 is none;
    a negative depth is unlimited. A bound of the tail's tokens below 0 is none, nor is a prefix below 1; a number of
    passes below 1, and a length of what is cut below 64, are the default.
    """
    found: dict[str, int | None] = {
        name: math.floor(fields[name]) if 0 < fields[name] < math.inf else _BY_NAME[name].default
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
    return next(setting.environment for setting in NEWEST if yaml_key in setting.yaml_keys)


def unusable(env: Mapping[str, str]) -> list[str]:
    """What is wrong with `LCM_*` variables, a sentence each: a value that cannot be read, a name that nobody knows."""
    problems = []
    known = {name: setting for setting in NEWEST for name in setting.environments}
    for name, text in sorted(env.items()):
        if not name.startswith("LCM_") or name in _OURS:
            continue
        if name not in known:
            near = get_close_matches(name, [*known, *_OURS], n=1, cutoff=0.8)
            problems.append(f"nothing reads {name}{f': is {near[0]} meant?' if near else ''}")
        elif known[name].host_only and known[name].name != "database_path":
            problems.append(f"{name} has no effect: {known[name].host_only}")
        elif from_environment(known[name], env) is None:
            problems.append(f"{name}={text!r} cannot be read and has no effect")
    return problems


def from_environment(setting: Setting, env: Mapping[str, str]) -> Any:
    """The variable's value; None where it is not set or cannot be used."""
    values = (_FROM_TEXT[setting.kind](env[name]) for name in setting.environments if name in env)
    return next((value for value in values if value is not None and setting.is_usable(value)), None)


def _from_plugin(setting: Setting, plugin: Mapping[str, Any]) -> Any:
    values = (_from_json(setting.kind, _at(plugin, key)) for key in setting.plugin_keys)
    return next((value for value in values if value is not None and setting.is_usable(value)), None)


def _at(plugin: Mapping[str, Any], key: str) -> Any:
    found: Any = plugin
    for name in key.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _from_json(kind: Kind, value: object) -> Any:
    if kind in ("enabled", "flag"):
        return _flag(value)
    if kind == "list":
        if isinstance(value, str):
            return _listed(value)
        items = value if isinstance(value, list) else None
        return None if items is None else [trim(item) for item in items if isinstance(item, str) and trim(item)]
    if kind == "objects":
        return value if isinstance(value, list) else None
    if kind == "providers":
        items = value if isinstance(value, list) else []
        named = [_provider(one.get("provider"), one.get("model")) for one in items if isinstance(one, dict)]
        return [one for one in named if one] or None
    if kind == "choice":
        return _lowered(value) if isinstance(value, str) else None
    if kind in ("float", "int", "strict_int"):
        return value if is_finite_number(value) else _whole_number(value) if isinstance(value, str) else None
    return trim(value) or None if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value) if isinstance(value, str) else None


def _lowered(text: str) -> str | None:
    return trim(text).lower() or None


def _provider(provider: object, model: object) -> dict[str, str] | None:
    if not isinstance(provider, str) or not isinstance(model, str) or not trim(provider) or not trim(model):
        return None
    return {"provider": trim(provider), "model": trim(model)}


def _providers(text: str) -> list[dict[str, str]] | None:
    named = (part.partition("/") for part in _listed(text))
    return [one for provider, _, model in named if (one := _provider(provider, model))] or None


def _listed(text: str) -> list[str]:
    return [item for item in map(trim, text.split(",")) if item]


def _whole_number(text: str) -> float | None:
    """A text that is a number and nothing else."""
    literal = trim(text)
    if not _WHOLE_NUMBER.fullmatch(literal):
        return None
    has_base = literal[:2].lower() in ("0x", "0b", "0o")
    try:
        return _plain(float(int(literal, 0) if has_base else literal))
    except OverflowError:
        return None


def _leading_int(text: str) -> int | None:
    found = _LEADING_INT.match(trim(text))
    return int(found[0]) if found else None


def _leading_float(text: str) -> float | None:
    found = _LEADING_FLOAT.match(trim(text))
    return _plain(float(found[0])) if found else None


def _plain(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


_FROM_TEXT: dict[Kind, Callable[[str], Any]] = {
    "enabled": lambda text: text != "false",
    "flag": lambda text: text == "true",
    "list": _listed,
    "float": _leading_float,
    "int": _leading_int,
    "strict_int": _whole_number,
    "text": trim,
    "path": lambda text: trim(text) or None,
    "timezone": lambda text: trim(text) or None,
    "choice": _lowered,
    "objects": lambda text: None,
    "providers": _providers,
}

_BY_NAME = {setting.name: setting for setting in (*NEWEST, *SETTINGS)}
