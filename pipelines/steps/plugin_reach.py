"""What a plugin can be told of a configuration: which keys of ours reach it, and why others do not."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lcm.plugins.settings.tables import Table
from lcm.plugins.settings.translation import ExportedSettings, differences, reachable, read, written
from pipelines.config.overrides import key_of
from pipelines.config.presets import RECALL, RestoredConfig, plugin_default, restored_choices, system_groups

_NOT_TAKEN_UP = "no part of this memory takes it up"


def not_expressible(
    table: Table, config: Mapping[str, Any], preset: RestoredConfig, told: ExportedSettings
) -> list[dict[str, Any]]:
    """Every key at which the plugin, told all that it has a setting for, would not do as the configuration, which is
    `preset` as its choices made it: with both values and the reason."""
    again = read(table, told.document, told.by_variable)
    theirs, _ = plugin_default(table, again)
    taken_up = _taken_up(config, preset)
    absent = [group for group in taken_up if group in table.absent]
    missing = [_missing(", ".join(absent), table.absent_reason)] if absent else []
    for group in (group for group in taken_up if group not in absent):
        for found in differences(group, preset.config[group], theirs.get(group)):
            reason = told.refused.get(found.key) or table.reason(found.key)
            missing.append(_missing(found.key, reason, found.ours, found.theirs))
    return missing + [_missing(key, f"written, without effect: {why}") for key, why in told.without_effect.items()]


def lost_keys(
    keys: Iterable[str], config: Mapping[str, Any], preset: RestoredConfig, missing: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Of some keys those that do not reach the plugin, and why, by what `not_expressible` finds."""
    taken_up, lost = _taken_up(config, preset), {}
    for key in keys:
        if key.partition(".")[0] not in taken_up:
            lost[key] = _NOT_TAKEN_UP
        for entry in missing:
            if any(is_of(key, other) for other in str(entry["key"]).split(", ")):
                lost.setdefault(key, str(entry["reason"]))
    return lost


def reach(table: Table, keys: Sequence[str], lost: Collection[str], what: str) -> str:
    """How many of some keys reach a plugin, in a line that can go on with which do not."""
    count = len(keys) - len([key for key in keys if key in lost])
    return f"{count} of {len(keys)} {what} reach {table.name} {table.version}"


def reach_of_swept(table: Table, configs: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> str:
    """Which of the keys that resolved configurations differ in a plugin can take, at each of their values."""
    lost: dict[str, str] = {}
    for config in configs:
        preset, choices = restored_choices(config)
        missing = not_expressible(table, config, preset, written(table, config, preset.config, choices))
        lost |= {key: why for key, why in lost_keys(keys, config, preset, missing).items() if key not in lost}
    told = "".join(f"; not {key}: {why}" for key, why in lost.items())
    return f"{reach(table, keys, lost, 'swept keys')}{told}"


def keys_of_memory(overrides: Iterable[str], config: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of overrides that set something of the memory: no preset, and nothing of how it is measured."""
    known = (*system_groups(config), RECALL)
    keys = dict.fromkeys(map(key_of, overrides))
    return tuple(key for key in keys if key.partition(".")[0] in known)


def is_of(key: str, other: str) -> bool:
    """Whether one of two paths is the other, or lies below it."""
    return key == other or key.startswith(f"{other}.") or other.startswith(f"{key}.")


def _taken_up(config: Mapping[str, Any], preset: RestoredConfig) -> list[str]:
    return [*reachable(preset.config), *([RECALL] if RECALL in config else [])]


def _missing(key: str, reason: str, here: Any = None, there: Any = None) -> dict[str, Any]:
    return {"key": key, "value": here, "plugin_value": there, "reason": reason}
