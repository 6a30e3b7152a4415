"""What exporting and importing presets asks of the configuration."""

import copy
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from eval.configuration import config_hash
from lcm.plugins.settings.tables import VERSIONS, Table
from lcm.plugins.settings.translation import ImportedSettings, applied
from pipelines.config import building, composition, conf_folder
from pipelines.config.building import identity
from pipelines.config.preset_choices import Choices, RestoredConfig, restored
from pipelines.config.preset_folder import PROTOCOL, escaped

RECALL = "recall"
"""A group of the commands that search, which `lcm evaluate` does not have."""
_NO_PART = ("tracking", "executor", "system", "experiment")
_ROOT_TARGET = re.compile(r"^_target_: *(\S+)", re.MULTILINE)


def system_groups(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The groups of a configuration that make up the memory system, in its order."""
    known = conf_folder.groups()
    return tuple(group for group in config if group in known and group not in (*PROTOCOL, *_NO_PART))


def with_references(overrides: Sequence[str], pipeline: str = conf_folder.EVALUATE) -> dict[str, Any]:
    """A composed configuration as plain data, its references as they were written."""
    return copy.deepcopy(_composed_once(tuple(overrides), pipeline))


@lru_cache(maxsize=64)
def _composed_once(overrides: tuple[str, ...], pipeline: str) -> dict[str, Any]:
    return OmegaConf.to_container(composition.composed(overrides, pipeline))  # type: ignore[return-value]


def restored_choices(config: Mapping[str, Any]) -> tuple[RestoredConfig, Choices]:
    """A resolved configuration as its choices made it, and the choices that were looked at."""
    groups = [group for group in config if group in conf_folder.groups() and group not in _NO_PART]
    wanted = {group: choices_like(group, config[group]) for group in groups}
    for table in (table for tables in VERSIONS.values() for table in tables.values()):
        for group, known in table.choices.items():
            wanted[group] = list(dict.fromkeys([*wanted.get(group, ()), *(choice.name for choice in known)]))
    choices = shipped_choices(wanted)
    wired = {"memory": {"memory": with_references([])["memory"]}}
    return restored(config, {**{group: choices[group] for group in groups}, **wired}), choices


def shipped_choices(wanted: Mapping[str, Collection[str]]) -> dict[str, dict[str, Any]]:
    """What each of these choices holds: composed together, one of every group at a time, and once in a process."""
    while left := {group: new for group, names in wanted.items() if (new := _unknown(group, names))}:
        by_pipeline: dict[str, dict[str, str]] = {}
        for group, names in left.items():
            pipeline = RECALL if group == RECALL else conf_folder.EVALUATE
            by_pipeline.setdefault(pipeline, {})[group] = names[0]
        for pipeline, chosen in by_pipeline.items():
            composed = with_references([f"{group}={name}" for group, name in chosen.items()], pipeline)
            _SHIPPED.update({(group, name): composed[group] for group, name in chosen.items()})
    return copy.deepcopy({group: {name: _SHIPPED[group, name] for name in names} for group, names in wanted.items()})


_SHIPPED: dict[tuple[str, str], Any] = {}
"""(Group, choice) -> what it holds; the folder of choices does not change while a command runs."""


def _unknown(group: str, names: Collection[str]) -> list[str]:
    return [name for name in names if (group, name) not in _SHIPPED]


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
    return f"{adds}{key}={composition.quoted(value)}"


def choices_like(group: str, node: Any) -> list[str]:
    """The choices that may be of the same class: the only ones that a node can come from."""
    target = node.get("_target_") if isinstance(node, Mapping) else None
    like = []
    for choice in conf_folder.groups()[group]:
        found = _ROOT_TARGET.search((conf_folder.conf_dir() / group / f"{choice}.yaml").read_text())
        if found is None or target is None or found[1] == target:
            like.append(choice)
    return like
