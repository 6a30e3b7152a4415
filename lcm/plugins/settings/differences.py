"""Where two configurations of a memory system differ, key by key."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lcm.plugins.settings.table import ABSENT

_REFERENCE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Difference:
    """One key; of a part of another class, the key of the part."""

    key: str
    ours: Any
    theirs: Any


def reachable(config: Mapping[str, Any], root: str = "memory") -> tuple[str, ...]:
    """The groups that the memory takes up, in the order in which they are first named.

    Args:
        config: with its references.
    """
    found: list[str] = []

    def follow(node: Any) -> None:
        if isinstance(node, Mapping):
            for child in node.values():
                follow(child)
        elif isinstance(node, list):
            for child in node:
                follow(child)
        elif isinstance(node, str):
            for name in _REFERENCE.findall(node):
                if name in config and name not in found:
                    found.append(name)
                    follow(config[name])

    follow(config[root])
    return tuple(found)


def differences(key: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    """Every key below `key` at which the two differ; what refers to another group is told of there.

    Args:
        ours: a node with its references.
        theirs: likewise.
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        if ours.get("_target_") != theirs.get("_target_"):
            yield Difference(key, _named(ours), _named(theirs))
            return
        for name in [*ours, *(name for name in theirs if name not in ours)]:
            yield from differences(f"{key}.{name}", ours.get(name, ABSENT), theirs.get(name, ABSENT))
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield Difference(key, _shown(ours), _shown(theirs))


def _named(node: Mapping[str, Any]) -> Any:
    return str(node.get("_target_", dict(node))).rpartition(".")[2]


def _shown(value: Any) -> Any:
    if value is ABSENT:
        return "nothing"
    return _named(value) if isinstance(value, Mapping) and "_target_" in value else value
