"""Settings of lossless-claw, read off the tables that resolve them.

Source: lossless-claw 0.6.3 and 0.15.3.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lcm.plugins.lossless_claw import settings
from lcm.plugins.lossless_claw.settings import EVICTIONS, FILE, Setting
from lcm.plugins.settings.kinds import FLAG, TEXT, TEXTS, milliseconds, number, one_of, seconds, unless_null, whole
from lcm.plugins.settings.table import ABSENT, InexpressibleError, Key, Row, Table, at, same

_KINDS: Mapping[str, Mapping[str, Any]] = {
    "enabled": FLAG,
    "flag": FLAG,
    "list": TEXTS,
    "text": TEXT,
    "path": TEXT,
    "timezone": {"type": "string", "minLength": 1},
    "objects": {"type": "array", "items": {"type": "object"}},
    "providers": {"type": "array", "items": {"type": "object"}},
}
_UNBOUNDED = ("max_assembly_token_budget", "fresh_tail_max_tokens", "summary_prefix_target_tokens")
"""Settings without a default, where ours is no bound."""


_BY_LEAF_CHUNK = 0
"""Of `session.bootstrap_max_tokens`: the bound that the plugin works out where none is given."""


def _rows(setting: Setting) -> list[Row]:
    keys = tuple(Key(key, _reading(setting)) for key in setting.yaml_keys)
    row = Row(
        setting.plugin_keys[0],
        _schema(setting),
        _default(setting),
        keys,
        _write(setting),
        no_key=setting.host_only,
        lossy="the plugin trims its settings, and leaves out what is empty" if setting.kind == "list" else "",
        environment=setting.environment,
        in_manifest=setting.in_manifest,
    )
    beside = [_older(setting, row, name) for name in setting.manifest_aliases]
    return [row, *beside]


def _older(setting: Setting, row: Row, name: str) -> Row:
    """An older name of a setting: what it says is read where the setting is not given."""
    if not row.keys:
        return Row(name, row.schema, no_key=setting.host_only)
    return Row(name, row.schema, lambda document: at(document, name), environment=setting.older_environment)


def _schema(setting: Setting) -> Mapping[str, Any]:
    if setting.kind in _KINDS:
        return _KINDS[setting.kind]
    if setting.options:
        return one_of(*setting.options)
    if setting.kind == "float":
        return number(setting.least, setting.most)
    bounds = (None if bound is None else int(bound) for bound in (setting.least, setting.most))
    return whole(*bounds)


def _default(setting: Setting) -> Any:
    if setting.name == "bootstrap_max_tokens":
        return _by_leaf_chunk
    if setting.name in _UNBOUNDED:
        return _unbounded
    default = ABSENT if setting.default is None else setting.default
    older = setting.manifest_aliases if setting.yaml_keys else ()
    return _first_of(older, default) if older else default


def _first_of(names: Sequence[str], default: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda document: next((value for name in names if (value := at(document, name)) is not ABSENT), default)


def _by_leaf_chunk(document: Mapping[str, Any]) -> int:
    return _BY_LEAF_CHUNK


def _unbounded(document: Mapping[str, Any]) -> None:
    """No bound is a value of ours, and no value of the plugin's."""


def _reading(setting: Setting) -> Callable[[Any], Any]:
    if setting.is_milliseconds:
        return seconds
    if setting.name == "prompt_aware_eviction":
        return EVICTIONS.__getitem__
    if setting.kind == "list":
        return _worded
    return _named if setting.name == "summary_model" else same


def _worded(items: list[str]) -> list[str]:
    return [item.strip() for item in items if item.strip()]


def _named(model: str) -> Any:
    """No name leaves the model to the host."""
    return model or ABSENT


def _write(setting: Setting) -> Callable[[Any], Any]:
    if setting.is_milliseconds:
        return _timed
    if setting.name == "prompt_aware_eviction":
        return _evicting
    if setting.kind in ("text", "timezone"):
        return _trimmed
    return _bounded if setting.name == "bootstrap_max_tokens" else unless_null


def _timed(duration: float | None) -> Any:
    if duration is None:
        raise InexpressibleError("the plugin always has a bound of time")
    return milliseconds(duration)


def _evicting(eviction: str) -> bool:
    return eviction == EVICTIONS[True]


def _bounded(tokens: int | None) -> Any:
    return ABSENT if tokens == _BY_LEAF_CHUNK else unless_null(tokens)


def _trimmed(text: str) -> str:
    """The plugin trims what it reads."""
    if text != text.strip():
        raise InexpressibleError("the plugin trims its settings: take away the blanks at the ends")
    return text


def _table(version: str) -> Table:
    return Table(
        name=FILE["name"],
        plugin=FILE["plugin"],
        version=version,
        base=tuple(FILE["versions"].get(version, FILE)["base"]),
        rows=tuple(row for setting in settings.VERSIONS[version] for row in _rows(setting)),
        reasons=FILE["reasons"],
        absent=tuple(FILE["absent"]),
        absent_reason=FILE["absent_reason"],
    )


VERSIONS: Mapping[str, Table] = {version: _table(version) for version in settings.VERSIONS}
"""By version: everything that the plugin's manifest has, and what variables alone can set."""
