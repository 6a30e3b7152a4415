"""Presets: which choices a configuration is made of, what tells it from the default, and how it is kept on disk."""

import copy
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from eval.configuration import config_hash, leaves
from eval.run import CONFIG, write_json, write_summary
from lcm.errors import LcmError
from lcm.files import write_text
from lcm.plugins.settings.tables import ABSENT, VERSIONS, Table, at
from lcm.plugins.settings.translation import ImportedSettings, applied
from pipelines.config import building, composition
from pipelines.config.building import BESIDE, as_written, identity
from pipelines.config.check import checked
from pipelines.config.conf_folder import EVALUATE, PRESETS, REFERENCE, Choosing, Tree, groups, place, shipped
from pipelines.config.overrides import group_of, quoted
from pipelines.config.trust import TARGET

PROVENANCE = "provenance.json"
PROTOCOL = ("dataset", "replay", "measures", "arms")
"""Groups of what is measured rather than of the system; tracking is of neither."""
RECALL = "recall"
"""A group of the commands that search, which `lcm evaluate` does not have."""
_NO_PART = ("tracking", "executor", "system", "experiment")
_LEFT_OUT = (*BESIDE, "sweep", "hydra")
"""What is not told of a run: it changes no number."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

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


def restored_choices(config: Mapping[str, Any]) -> tuple[RestoredConfig, Choices]:
    """A resolved configuration as its choices made it, of each group the nearest, with its references where they mean
    the same; and the choices that were looked at."""
    own = [group for group in config if group in groups() and group not in _NO_PART]
    wanted = {group: choices_like(group, config[group]) for group in own}
    for table in (table for tables in VERSIONS.values() for table in tables.values()):
        for group, names in table.choices.items():
            wanted[group] = list(dict.fromkeys([*wanted.get(group, ()), *(choice.name for choice in names)]))
    choices = shipped_choices(wanted)
    whole: dict[str, Any] = dict(config)
    exact: dict[str, str | None] = dict.fromkeys(own)
    wired = {"memory": {"memory": with_references([])["memory"]}}
    for group, known in ({group: choices[group] for group in own if choices[group]} | wired).items():
        node = config.get(group)
        distance, nearest = min((sum(_misses(group, raw, node, config)), name) for name, raw in known.items())
        exact[group] = nearest if distance == 0 else None
        whole[group] = _referring(group, known[nearest], node, config)
    return RestoredConfig(whole, exact), choices


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
    if (found := REFERENCE.fullmatch(raw)) is None:
        return OmegaConf.to_container(OmegaConf.create({"value": raw}), resolve=True)["value"]  # type: ignore[index, call-overload]
    return at(config, place(found, path))


def system_groups(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The groups of a configuration that make up the memory system, in its order."""
    return tuple(group for group in config if group in groups() and group not in (*PROTOCOL, *_NO_PART))


def with_references(overrides: Sequence[str], pipeline: str = EVALUATE) -> dict[str, Any]:
    """A composed configuration as plain data, its references as they were written."""
    return copy.deepcopy(_composed_once(tuple(overrides), pipeline))


@lru_cache(maxsize=64)
def _composed_once(overrides: tuple[str, ...], pipeline: str) -> dict[str, Any]:
    return OmegaConf.to_container(composition.composed(overrides, pipeline))  # type: ignore[return-value]


def shipped_choices(wanted: Mapping[str, Collection[str]]) -> dict[str, dict[str, Any]]:
    """What each of these choices holds."""
    return {group: {name: shipped().node(group, name) for name in names} for group, names in wanted.items()}


def plugin_default(table: Table, read: ImportedSettings) -> tuple[dict[str, Any], list[str]]:
    """Our configuration, with references, that does what a plugin does with a configuration; and the choices of it."""
    overrides = [*table.base, *(f"{group}={choice}" for group, choice in read.choices.items())]
    config = with_references(overrides)
    if any(key.startswith(f"{RECALL}.") for key in read.values):
        config[RECALL] = with_references([f"{RECALL}={table.name}"], RECALL)[RECALL]
    return applied(config, read.values), overrides


def hash_of(config: Mapping[str, Any]) -> str:
    """The hash that a run with this resolved configuration has."""
    evaluated = {key: value for key, value in config.items() if key != RECALL}
    return config_hash(identity(building.resolved(OmegaConf.create(escaped(evaluated)))))


def composed_of(folder: Path, *overrides: str) -> dict[str, Any]:
    """The resolved configuration that `lcm evaluate` composes with the choices of a folder."""
    return building.resolved(composition.composed([searched(folder), *overrides]))


def searched(folder: Path) -> str:
    """The override that lets Hydra find choices in a folder."""
    place = str(folder.absolute()).replace("'", r"\'")
    return f"hydra.searchpath=['file://{place}']"


def override(key: str, value: Any) -> str:
    """A value as an override that gives it back."""
    adds = "++" if isinstance(value, Mapping) else ""  # names of the user's own are keys that no choice has
    return f"{adds}{key}={quoted(value)}"


def choices_like(group: str, node: Any) -> list[str]:
    """The choices that may be of the same class: the only ones that a node can come from."""
    target = node.get(TARGET) if isinstance(node, Mapping) else None
    known = {choice: shipped().node(group, choice) for choice in groups()[group]}
    return [choice for choice, own in known.items() if TARGET not in own or target in (None, own[TARGET])]


def repeated_dataset(config: DictConfig) -> list[str] | None:
    """The overrides by which a new configuration loads and lays out the dataset of a run, whose configuration names
    classes and no choices; None where a class is that of no choice here."""
    places = ["dataset"]
    if "replay" in config:
        names = config.get("distractors", {}) if config.replay.get("distractors") else {}
        places += ["replay", *(f"distractors.{name}" for name in names)]
    told: list[str] = []
    whole, usual = building.resolved(config), building.resolved(composition.composed([]))
    for path in places:
        group = path if path in groups() else "dataset"
        kept, begin = at(whole, path), at(usual, path)
        if not (alike := choices_like(group, kept)):
            return None
        if kept == begin and path != "dataset":
            continue
        place = "" if path == group else f"@{path}"
        chosen = f"{'+' if begin is ABSENT else ''}{group}{place}={alike[0]}"
        told += [chosen, *_changes(path, at(building.resolved(composition.composed([chosen])), path), kept)]
    return told


def _changes(path: str, base: Any, value: Any) -> Iterator[str]:
    if isinstance(base, Mapping) and isinstance(value, Mapping):
        for name, child in value.items():
            yield from _changes(f"{path}.{name}", base.get(name, ABSENT), child)
    elif base is ABSENT:
        yield f"+{path}={quoted(value)}"
    elif base != value or isinstance(base, bool) != isinstance(value, bool):
        yield f"{path}={quoted(value)}"


def asked_of(config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """For the summary of a run: what was asked for, but for what changes no number, and what of its configuration,
    composed of that, is not the default."""
    told = [one for one in overrides if group_of(one) not in _LEFT_OUT]
    return {"overrides": told, "changed": changed(config, overrides)}


def changed(config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """Each group that has another choice than by default -> that choice; each setting by its dotted key -> its value.

    A setting is told where it is not as the choices alone, those of presets among them, have it. What an override names
    is told though it be the default, as by one point of a sweep.
    """
    right = checked(overrides)
    asked = {one.key if one.package is None else f"{one.key}@{one.package}" for one in right.asked}
    usual = shipped().chosen(EVALUATE).choices
    choices = {
        key: choice
        for key, choice in right.chosen.choices.items()
        if (key in asked or (key in groups() and choice != usual.get(key)))  # others come along with a choice
        and group_of(key) not in _LEFT_OUT
    }
    tree = Tree(right.folders)
    alone = {key: choice for key, choice in choices.items() if group_of(key) not in PRESETS}
    first = [Choosing(key, choice) for key, choice in alone.items() if key in usual]
    there = tree.chosen(EVALUATE, first).choices  # among them slots of what was chosen, which are no addition
    rest = [Choosing(key, alone[key], "" if key in there else "+") for key in alone if key not in usual]
    plain = tree.chosen(EVALUATE, [*first, *rest]).config
    before = dict(leaves({key: node for key, node in plain.items() if key not in _LEFT_OUT}))
    now = leaves({key: node for key, node in as_written(config).items() if key not in _LEFT_OUT})
    missing = object()
    return {key: value for key, value in now if key in asked or before.get(key, missing) != value} | choices


def check_name(name: str, choices: Mapping[str, Iterable[str]]) -> None:
    """Refuse a name that cannot be a choice's, or is one's already, which would be taken before it."""
    if not _NAME.fullmatch(name):
        raise LcmError(f"name={name!r} must be letters, digits and underscores, a letter first")
    if taken := [group for group, known in choices.items() if name in known]:
        raise LcmError(f"name={name} is a choice of {', '.join(taken)} already: take another name")


def write_choices(
    folder: Path, name: str, preset: RestoredConfig, groups: Sequence[str], beside: Sequence[str], what: str
) -> None:
    """Write `system/NAME.yaml`, `experiment/NAME.yaml`, and a file for each group that no choice of ours is.

    Args:
        groups: of the system, in the order of the configuration.
        beside: overrides of what no group holds; the experiment is whole with them.
        what: one sentence that says where the numbers come from.
    """
    texts = {
        f"{group}/{name}": f"# {what}\n"
        + yaml.safe_dump(escaped(preset.config[group]), sort_keys=False, allow_unicode=True, width=120)
        for group, choice in preset.choices.items()
        if choice is None and (group in groups or group in PROTOCOL)
    }
    known = [group for group in preset.choices if group in groups or group in PROTOCOL]
    chosen = {group: f"/{group}: {preset.choices[group] or name}" for group in known}
    here = f"hydra.searchpath=[file://{folder.absolute()}]"
    for kind, lines, more in (
        ("system", [chosen[group] for group in known if group in groups], ()),
        ("experiment", [*(chosen[group] for group in known if group in PROTOCOL), f"/system: {name}"], beside),
    ):
        command = shlex.join(["lcm", "evaluate", f"{kind}={name}", here, *more])
        head = f"# @package _global_\n# {what}\n# {command}\ndefaults:\n"
        texts[f"{kind}/{name}"] = head + "".join(f"  - override {line}\n" for line in lines)
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{path}.yaml", text)


def write_provenance(
    folder: Path, name: str, config: Mapping[str, Any], config_text: str, provenance: Mapping[str, Any]
) -> None:
    """Write the configuration, where it comes from, and last the summary: a folder with a summary is complete."""
    write_text(folder / CONFIG, config_text)
    write_json(folder / PROVENANCE, provenance)
    summary = {
        "kind": "preset",
        "name": name,
        "config_hash": provenance["config_hash"],
        "commit": provenance["commit"],
        **({"dataset": provenance["dataset"]} if provenance["dataset"] else {}),
        "metrics": {
            f"{measure}{suffix}": entry[key]
            for measure, entry in provenance["measures"].items()
            for key, suffix in (("value", ""), ("low", ".low"), ("high", ".high"))
            if entry.get(key) is not None
        },
        "params": dict(leaves(config)),
        "tags": {
            "preset": name,
            "lcm_version": provenance["lcm"],
            "source": provenance["source"]["kind"],
            **{
                f"not_expressible/{target}": str(len(told["not_expressible"]))
                for target, told in provenance["targets"].items()
            },
        },
    }
    write_summary(folder, summary)


def escaped(node: Any) -> Any:
    """Plain data as OmegaConf reads it back: a text with `${` in it that refers to nothing is marked as words."""
    if isinstance(node, Mapping):
        return {name: escaped(child) for name, child in node.items()}
    if isinstance(node, list):
        return [escaped(child) for child in node]
    if isinstance(node, Reference):
        return str(node)
    if isinstance(node, str):
        return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", node)
    return node
