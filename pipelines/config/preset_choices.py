"""Which choices a configuration was made by: the file of a run holds numbers, and no names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf

from lcm.plugins.settings.tables import ABSENT, at

_WHOLE = re.compile(r"\$\{(\.*)([\w.]+)\}")

Choices = Mapping[str, Mapping[str, Any]]
"""Group -> choice -> what the choice holds, with its references."""


class Reference(str):
    """A text that stands for what is written elsewhere, as `${decay}`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RestoredConfig:
    """A configuration as its choices and changes made it."""

    config: dict[str, Any]
    """With references."""
    choices: dict[str, str | None]
    """Group -> the choice that it is, number for number; None where it differs from every one."""


def restored(config: Mapping[str, Any], choices: Choices) -> RestoredConfig:
    """Find the nearest choice of every group, and put its references back where they mean the same.

    Args:
        config: a configuration with every reference worked out.
    """
    whole: dict[str, Any] = dict(config)
    exact: dict[str, str | None] = {}
    for group, known in choices.items():
        node = config.get(group)
        by_distance = sorted((sum(_misses(group, raw, node, config)), name) for name, raw in known.items())
        if not by_distance:
            exact[group] = None
            continue
        distance, nearest = by_distance[0]
        exact[group] = nearest if distance == 0 else None
        whole[group] = _referring(group, known[nearest], node, config)
    return RestoredConfig(whole, exact)


def _misses(path: str, raw: Any, value: Any, config: Mapping[str, Any]) -> Iterator[int]:
    """1 for every setting that is another, many for a part of another class."""
    meant = _meaning(path, raw, config)
    if isinstance(raw, Mapping) and isinstance(value, Mapping):
        if raw.get("_target_") != value.get("_target_"):
            yield 1000
        for name in {**raw, **value}:
            yield from _misses(f"{path}.{name}", raw.get(name, ABSENT), value.get(name, ABSENT), config)
    elif meant != value or isinstance(meant, bool) != isinstance(value, bool):
        yield 1


def _referring(path: str, raw: Any, value: Any, config: Mapping[str, Any]) -> Any:
    if isinstance(raw, str) and "${" in raw and _meaning(path, raw, config) == value:
        return Reference(raw)
    if isinstance(raw, Mapping) and isinstance(value, Mapping):
        return {name: _referring(f"{path}.{name}", raw.get(name), child, config) for name, child in value.items()}
    return value


def _meaning(path: str, raw: Any, config: Mapping[str, Any]) -> Any:
    """What a setting of a choice means where the rest is configured so."""
    if not isinstance(raw, str) or "${" not in raw:
        return raw
    found = _WHOLE.fullmatch(raw)
    if found is None:
        return OmegaConf.to_container(OmegaConf.create({"value": raw}), resolve=True)["value"]  # type: ignore[index, call-overload]
    dots, name = found.groups()
    above = path.split(".")[: -len(dots)] if dots else []
    return at(config, ".".join([*above, name]))
