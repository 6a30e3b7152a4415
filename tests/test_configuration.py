"""Every YAML: composed, built, equal to the code that it configures."""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from lcm.memory.system import System
from pipelines.config import building, composition, conf_folder
from tests.support.composing import inherited, plain
from tests.support.roots import FILES, choices_of, groups_of, pipeline_of

CONF = conf_folder.conf_dir()
YAMLS = [str(path.relative_to(CONF).with_suffix("")) for path in sorted(CONF.rglob("*.yaml"))]
CHOICES = [tuple(name.split("/")) for name in YAMLS if "/" in name]
PRESET_GROUPS = ("system", "experiment", "sweep")
PRESETS = [(group, choice) for group, choice in CHOICES if group in PRESET_GROUPS]
NO_PRESET = composition.composed([])


def nodes(name: str, node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node of a YAML that names a target, with the name it goes by: its key, or the YAML's stem at the root."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield name, node
        for key, child in node.items():
            yield from nodes(key, child)


def written(yaml: str) -> dict[str, Any]:
    """The YAML with what it inherits; of a preset and of a pipeline its own keys alone."""
    if "/" in yaml and not yaml.startswith(PRESET_GROUPS):
        return inherited(yaml)
    return {key: value for key, value in plain(yaml).items() if key not in ("hydra", "defaults")}


NODES = [
    pytest.param(name, node, id=f"{yaml}:{name}")
    for yaml in YAMLS
    for name, node in nodes(Path(yaml).stem, written(yaml))
]

DEFAULTS_BY_OTHER_NAMES = {
    "lcm.writing.admission.amac.Amac": "balanced",
    "lcm.retrieval.reinforcement.decay_tiers.DecayTiers": "tiers",
    "lcm.memory.scopes.scopes.Scopes": "default",
    "lcm.memory.session.rules.SessionRules": "default",
    "lcm.retrieval.source.tagged.TagPrefixes": "tags",
}
"""Target -> the name of a node that holds its defaults, besides those named like the target."""


def target(node: dict[str, Any]) -> Any:
    module, _, name = node["_target_"].rpartition(".")
    return getattr(importlib.import_module(module), name)


def parameters(node: dict[str, Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(target(node)).parameters)


def test_everything_of_the_default_configuration_builds() -> None:
    for key in NO_PRESET:
        if isinstance(NO_PRESET[key], DictConfig):
            building.build(NO_PRESET, key)


@pytest.mark.parametrize("yaml", YAMLS)
def test_a_yaml_begins_with_what_it_is(yaml: str) -> None:
    lines = (CONF / f"{yaml}.yaml").read_text().splitlines()
    if lines[0] == "# @package _global_":  # where a preset says that it sets other groups
        lines = lines[1:]
    assert re.match(r"# \S.* \S.*", lines[0])


@pytest.mark.parametrize(("group", "choice"), CHOICES)
def test_a_choice_composes_and_builds(group: str, choice: str) -> None:
    config = composition.composed([f"{group}={choice}"], pipeline_of(group))
    for key in {"memory", group} & set(config):
        assert building.build(config, key) is not None


@pytest.mark.parametrize(("name", "node"), NODES)
def test_keys_are_the_constructors_parameters(name: str, node: dict[str, Any]) -> None:
    assert set(node) - {"_target_"} == set(parameters(node))


@pytest.mark.parametrize(("name", "node"), NODES)
def test_a_yaml_named_like_its_target_holds_the_defaults(name: str, node: dict[str, Any]) -> None:
    module, class_name = node["_target_"].split(".")[-2:]
    own_names = (module, class_name.lower(), re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", class_name).lower())
    if name not in (*own_names, DEFAULTS_BY_OTHER_NAMES.get(node["_target_"])):
        return  # a preset of its class
    defaults = {
        key: default
        for key, parameter in parameters(node).items()
        if (default := default_of(parameter, target(node))) is not inspect.Parameter.empty and key in plainly(node)
    }
    assert {key: plainly(node)[key] for key in defaults} == defaults


def default_of(parameter: inspect.Parameter, of: type) -> Any:
    """What a parameter is without an argument, a tuple as a list; of a factory what it makes."""
    default = parameter.default
    if is_dataclass(of):
        (field,) = (field for field in fields(of) if field.name == parameter.name)
        default = default if field.default_factory is MISSING else field.default_factory()
    return list(default) if isinstance(default, tuple) else default


def plainly(node: dict[str, Any]) -> dict[str, Any]:
    """The keys of a node: nested nodes as the objects that they describe, without those that refer elsewhere."""
    own = {key: value for key, value in node.items() if not refers(value)}
    return {
        key: building.build(OmegaConf.create({key: value}), key)
        if isinstance(value, dict) and "_target_" in value
        else value
        for key, value in own.items()
    }


def refers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(refers(child) for child in value.values())
    return isinstance(value, str) and value.startswith("${")


def test_the_memory_node_wires_each_field_to_its_group() -> None:
    node = plain("config")["memory"]
    assert target(node) is System
    assert {key: node[key] for key in node if key != "_target_"} == {
        field.name: f"${{{field.name}}}" for field in fields(System)
    }


@pytest.mark.parametrize("file", FILES.values())
def test_a_table_of_contents_names_a_group_once_with_a_choice_that_exists(file: str) -> None:
    choices = choices_of(file)
    assert len(dict(choices)) == len(choices)
    for group, choice in choices:
        assert choice is None or (CONF / group / f"{choice}.yaml").is_file()


def test_every_group_stands_in_a_table_of_contents() -> None:
    assert set().union(*map(groups_of, FILES)) == {path.name for path in CONF.iterdir() if path.is_dir()}


@pytest.mark.parametrize(("group", "choice"), PRESETS)
def test_a_preset_only_overrides(group: str, choice: str) -> None:
    assert set(composition.composed([f"{group}={choice}"])) == set(NO_PRESET)


def overridden(system: str) -> list[str]:
    """The groups that a system chooses for."""
    entries = [key for entry in plain(f"system/{system}")["defaults"] if entry != "_self_" for key in entry]
    return [key.removeprefix("override /") for key in entries]


SWAPS = [
    (system, group, choice)
    for preset_group, system in PRESETS
    if preset_group == "system"
    for group in overridden(system)
    for chosen_group, choice in CHOICES
    if chosen_group == group
]


@pytest.mark.parametrize(("system", "group", "choice"), SWAPS)
def test_a_choice_on_the_command_line_wins_over_a_system(system: str, group: str, choice: str) -> None:
    swap, preset = f"{group}={choice}", f"system={system}"
    before, after = composition.composed([swap, preset]), composition.composed([preset, swap])
    assert before == after
    assert OmegaConf.to_container(after[group]) == inherited(f"{group}/{choice}")


def test_a_choice_of_a_group_that_a_system_leaves_alone_stands_beside_it() -> None:
    beside = composition.composed(["system=lancedb_pro", "vector_index=hnsw"])
    assert OmegaConf.to_container(beside.vector_index) == plain("vector_index/hnsw")
    assert OmegaConf.to_container(beside.ranking) == plain("ranking/lancedb_pro")
