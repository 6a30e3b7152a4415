"""Readers: which part of a configuration reads which key, and which keys nothing reads."""

import copy
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from lcm.protocols.contract import contract_of
from pipelines.config import unused
from pipelines.config.trust import component

_REFERENCE = re.compile(r"\$\{(\.*)([\w.]+)\}")
_COMMAND = "lcm evaluate"


@dataclass(frozen=True, slots=True)
class Part:
    """A component that a configuration describes."""

    written: str
    """The key below which its settings are written."""
    name: str
    """Of its class; of what the command itself reads that of the command."""
    keys: dict[str, Any] = field(default_factory=dict)
    """Its settings, and those of maps among them: key -> value, as they are written."""
    taken_by: list[str] = field(default_factory=list)
    """The keys at which it is taken up, from what the command builds; references between them are followed."""


@dataclass(frozen=True, slots=True)
class UnreadKey:
    """A key that nothing reads."""

    key: str
    value: Any
    reason: str


def parts_read(plain: dict[str, Any], roots: Collection[str]) -> list[Part]:
    """Every component that is built, with the keys that it reads.

    Args:
        plain: the configuration, references as they are written.
        roots: what the command builds or reads; it reads these, and all that they refer to.
    """
    acting, unused = _acting(plain), without_effect(plain)
    found: dict[str, Part] = {}
    for root in roots:
        _collect(acting, root, root, Part("", _COMMAND), found)
    for part in found.values():
        for key in unused.keys() & part.keys.keys():
            del part.keys[key]
    whole = {part.written for part in found.values() if not any(_is_in(key, part.written) for key in unused)}
    return [part for part in found.values() if part.keys or (part.name != _COMMAND and part.written in whole)]


def keys_unread(plain: dict[str, Any], roots: Collection[str]) -> list[UnreadKey]:
    """Every key that nothing reads, with the reason; arguments as of `parts_read`."""
    read = {key for part in parts_read(plain, roots) for key in part.keys}
    takers = _takers(plain)
    acting, off, unused_by = dict(leaves(_acting(plain), "")), _off_stages(plain), without_effect(plain)
    found = []
    for key, value in leaves(plain, ""):
        if key in read or _refers(value):
            continue
        stage = key.split(".")[2] if key.startswith("ranking.stages.") else None
        if stage in off:
            reason = f"{off[stage]} leaves {stage} without work"
        elif key in unused_by:
            reason = unused_by[key]
        elif key not in acting:
            reason = "of a stage, a path or an order of the ranking that no query goes through"
        else:
            taken = sorted(taker for place, those in takers.items() if _is_in(key, place) for taker in those)
            reason = f"taken up by {', '.join(taken)} alone, which nothing reads" if taken else "no part takes it up"
        found.append(UnreadKey(key, value, reason))
    return found


def _acting(plain: dict[str, Any]) -> dict[str, Any]:
    """The configuration without the stages, paths and orders of its ranking that no query goes through."""
    acting = copy.deepcopy(plain)
    unused.take_out_idle_stages(acting)
    for name in _off_stages(acting):
        stage = acting["ranking"]["stages"][name]
        for key in [key for key, value in stage.items() if key != "_target_" and not _refers(value)]:
            del stage[key]
    ranking = acting.get("ranking") or {}
    for path in ranking.values():
        if isinstance(path, dict) and isinstance(orders := path.get("orders"), dict):
            path["orders"] = {name: order for name, order in orders.items() if name == ranking["order"]}
    return acting


def _off_stages(plain: dict[str, Any]) -> dict[str, str]:
    """The stages of the ranking that hold a part which is off, as recovery=none is, and that part."""
    stages = (plain.get("ranking") or {}).get("stages") or {}
    held = {
        name: _at(plain, _place(reference, f"ranking.stages.{name}.{key}"))
        for name, stage in stages.items()
        if isinstance(stage, dict)
        for key, value in stage.items()
        if (reference := _refers(value))
    }
    return {
        name: str(node["_target_"]).rpartition(".")[2]
        for name, node in held.items()
        if isinstance(node, dict) and contract_of(component(str(node.get("_target_")))).is_off
    }


def without_effect(plain: dict[str, Any]) -> dict[str, str]:
    """Keys that a part takes and leaves aside, as its class says in `unused_where`, each with the reason."""
    found: dict[str, str] = {}
    for place, node in _parts(plain, ""):
        made = component(str(node["_target_"]))
        for name, others in getattr(made, "unused_where", {}).items():
            if not others:
                found[f"{place}.{name}"] = "live sessions alone ask it, and an evaluation plays none"
                continue
            meant = {_elsewhere(other) or f"{place}.{other}": value for other, value in others.items()}
            given = {other: _at(plain, other) for other in meant}
            if all(given[other] in (value if isinstance(value, tuple) else (value,)) for other, value in meant.items()):
                values = {other: "null" if value is None else value for other, value in given.items()}
                because = " and ".join(f"{other}={value}" for other, value in values.items())
                key = _elsewhere(name) or f"{place}.{name}"
                found |= {leaf: f"{because} leaves it without effect" for leaf, _ in leaves(_at(plain, key), key)}
    return found


def _elsewhere(name: str) -> str | None:
    """What `${...}` names, from the top of the configuration."""
    reference = _refers(name)
    return reference.group(2) if reference else None


def _parts(node: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What has a class, and where it is written."""
    if isinstance(node, dict):
        if path and "_target_" in node:
            yield path, node
        for name, child in node.items():
            yield from _parts(child, f"{path}.{name}" if path else str(name))


def _refers(value: Any) -> re.Match[str] | None:
    return _REFERENCE.fullmatch(value) if isinstance(value, str) else None


def _collect(plain: dict[str, Any], written: str, taken_by: str, owner: Part, found: dict[str, Part]) -> None:
    """Note who reads what is written at a key, and all below it."""
    node = _at(plain, written)
    if reference := _refers(node):
        _collect(plain, _place(reference, written), taken_by, owner, found)
        return
    if isinstance(node, dict) and "_target_" in node:
        owner = Part(written, str(node["_target_"]).rpartition(".")[2])
    part = found.setdefault(owner.written, owner)
    if owner.written == written and taken_by not in part.taken_by:
        part.taken_by.append(taken_by)
    if not isinstance(node, dict) or not node:
        part.keys[written] = node
    else:
        for name in node:
            if name != "_target_":
                _collect(plain, f"{written}.{name}", f"{taken_by}.{name}", owner, found)
    for reference in _REFERENCE.finditer(str(node) if isinstance(node, list) else ""):
        _collect(plain, _place(reference, written), taken_by, owner, found)


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a node and its value, but for the classes of parts."""
    if isinstance(node, dict) and node:
        for name, child in node.items():
            if name != "_target_":
                yield from leaves(child, f"{path}.{name}" if path else str(name))
    elif path:
        yield path, node


def _takers(plain: dict[str, Any]) -> dict[str, list[str]]:
    """Of each key that is referred to the keys that do."""
    takers: dict[str, list[str]] = {}
    for key, value in leaves(plain, ""):
        for reference in _REFERENCE.finditer(str(value)):
            takers.setdefault(_place(reference, key), []).append(key)
    return takers


def _place(reference: re.Match[str], written: str) -> str:
    """The key that a reference written at a key means."""
    dots, name = reference.groups()
    return ".".join([*written.split(".")[: -len(dots)], name]) if dots else name


def _at(plain: dict[str, Any], key: str) -> Any:
    node: Any = plain
    for name in key.split("."):
        node = node.get(name) if isinstance(node, dict) else None
    return node


def _is_in(key: str, place: str) -> bool:
    return key == place or key.startswith(f"{place}.")
