"""Every YAML: composed, built, equal to the code that it configures."""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from lcm.memory import System
from pipelines import configuration

CONF = configuration.conf_dir()
YAMLS = [str(path.relative_to(CONF).with_suffix("")) for path in sorted(CONF.rglob("*.yaml"))]
CHOICES = [tuple(name.split("/")) for name in YAMLS if "/" in name]
PRESET_GROUPS = ("system", "experiment")
PRESETS = [(group, choice) for group, choice in CHOICES if group in PRESET_GROUPS]
COMPONENTS = [(group, choice) for group, choice in CHOICES if group not in PRESET_GROUPS]
NO_PRESET = configuration.composed([])


def plain(name: str) -> dict[str, Any]:
    """A YAML as it is written."""
    return OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"))


def nodes(name: str, node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node of a YAML that names a target, with the name it goes by: its key, or the YAML's stem at the root."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield name, node
        for key, child in node.items():
            yield from nodes(key, child)


NODES = [
    pytest.param(name, node, id=f"{yaml}:{name}")
    for yaml in YAMLS
    for name, node in nodes(Path(yaml).stem, {key: value for key, value in plain(yaml).items() if key != "hydra"})
]


def target(node: dict[str, Any]) -> Any:
    module, _, name = node["_target_"].rpartition(".")
    return getattr(importlib.import_module(module), name)


def parameters(node: dict[str, Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(target(node)).parameters)


def build_everything(config: DictConfig) -> None:
    for key in config:
        if isinstance(config[key], DictConfig):
            configuration.build(config, key)


@pytest.mark.parametrize("yaml", YAMLS)
def test_a_yaml_begins_with_what_it_is(yaml: str) -> None:
    lines = (CONF / f"{yaml}.yaml").read_text().splitlines()
    if lines[0] == "# @package _global_":  # where a preset says that it sets other groups
        lines = lines[1:]
    assert re.match(r"# \S.* \S.*", lines[0])


@pytest.mark.parametrize(("group", "choice"), CHOICES)
def test_a_choice_composes_and_builds(group: str, choice: str) -> None:
    build_everything(configuration.composed([f"{group}={choice}"]))


@pytest.mark.parametrize(("name", "node"), NODES)
def test_keys_are_the_constructors_parameters(name: str, node: dict[str, Any]) -> None:
    assert set(node) - {"_target_"} == set(parameters(node))


@pytest.mark.parametrize(("name", "node"), NODES)
def test_a_yaml_named_like_its_target_holds_the_defaults(name: str, node: dict[str, Any]) -> None:
    module, class_name = node["_target_"].split(".")[-2:]
    if name not in (module, class_name.lower(), re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", class_name).lower()):
        return  # a preset of its class
    defaults = {
        key: list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
        for key, parameter in parameters(node).items()
        if parameter.default is not inspect.Parameter.empty
    }
    assert {key: node[key] for key in defaults} == defaults


def test_the_memory_node_wires_each_field_to_its_group() -> None:
    node = plain("config")["memory"]
    assert target(node) is System
    assert {key: node[key] for key in node if key != "_target_"} == {
        field.name: f"${{{field.name}}}" for field in fields(System)
    }


def test_the_table_of_contents_names_every_group_once() -> None:
    named = [group for entry in plain("config")["defaults"] if entry != "_self_" for group in entry if " " not in group]
    assert sorted(named) == sorted(path.name for path in CONF.iterdir() if path.is_dir())


def test_a_default_choice_exists() -> None:
    for entry in plain("config")["defaults"]:
        if entry != "_self_":
            for group, choice in entry.items():
                assert choice is None or " " in group or (CONF / group / f"{choice}.yaml").is_file()


@pytest.mark.parametrize(("group", "choice"), PRESETS)
def test_a_preset_only_overrides(group: str, choice: str) -> None:
    assert set(configuration.composed([f"{group}={choice}"])) == set(NO_PRESET)


@pytest.mark.parametrize(("group", "choice"), COMPONENTS)
@pytest.mark.parametrize("system", [choice for group, choice in PRESETS if group == "system"])
def test_a_choice_on_the_command_line_wins_over_a_system(system: str, group: str, choice: str) -> None:
    swap, preset = f"{group}={choice}", f"system={system}"
    before, after = configuration.composed([swap, preset]), configuration.composed([preset, swap])
    assert before == after
    assert OmegaConf.to_container(after[group]) == plain(f"{group}/{choice}")
