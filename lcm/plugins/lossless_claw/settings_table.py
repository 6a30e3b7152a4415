"""Settings of lossless-claw, read off the table that resolves them.

Source: lossless-claw 0.6.3.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lcm.plugins.lossless_claw.settings import FILE, SETTINGS, Setting
from lcm.plugins.settings.kinds import FLAG, TEXT, TEXTS, milliseconds, number, seconds, unless_null, whole
from lcm.plugins.settings.table import ABSENT, InexpressibleError, Key, Row, Table, same

_KINDS: Mapping[str, Mapping[str, Any]] = {
    "enabled": FLAG,
    "flag": FLAG,
    "list": TEXTS,
    "text": TEXT,
    "path": TEXT,
    "timezone": {"type": "string", "minLength": 1},
}


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
    older = "databasePath"  # the one older name that the manifest knows
    beside = [Row(older, TEXT, no_key=setting.host_only)] if older in setting.plugin_keys[1:] else []
    return [row, *beside]


def _schema(setting: Setting) -> Mapping[str, Any]:
    if setting.kind in _KINDS:
        return _KINDS[setting.kind]
    if setting.kind == "float":
        return number(setting.least, setting.most)
    bounds = (None if bound is None else int(bound) for bound in (setting.least, setting.most))
    return whole(*bounds)


def _default(setting: Setting) -> Any:
    if setting.name == "bootstrap_max_tokens":
        return _by_leaf_chunk
    if setting.name == "max_assembly_token_budget":
        return _unbounded
    return ABSENT if setting.default is None else setting.default


def _by_leaf_chunk(document: Mapping[str, Any]) -> int:
    return _BY_LEAF_CHUNK


def _unbounded(document: Mapping[str, Any]) -> None:
    """No bound is a value of ours, and no value of the plugin's."""


def _reading(setting: Setting) -> Callable[[Any], Any]:
    if setting.is_milliseconds:
        return seconds
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
        return milliseconds
    if setting.kind in ("text", "timezone"):
        return _trimmed
    return _bounded if setting.name == "bootstrap_max_tokens" else unless_null


def _bounded(tokens: int | None) -> Any:
    return ABSENT if tokens == _BY_LEAF_CHUNK else unless_null(tokens)


def _trimmed(text: str) -> str:
    """The plugin trims what it reads."""
    if text != text.strip():
        raise InexpressibleError("the plugin trims its settings: take away the blanks at the ends")
    return text


TABLE = Table(
    name=FILE["name"],
    plugin=FILE["plugin"],
    version=FILE["version"],
    base=tuple(FILE["base"]),
    rows=tuple(row for setting in SETTINGS for row in _rows(setting)),
    reasons=FILE["reasons"],
    absent=tuple(FILE["absent"]),
    absent_reason=FILE["absent_reason"],
)
"""Everything that the plugin's manifest has, and what variables alone can set."""
