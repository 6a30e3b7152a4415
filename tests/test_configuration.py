"""Every YAML: composed, built, equal to the code that it configures."""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from lcm.memory.system import System
from pipelines.config import building, composition, conf_folder
from tests.support.composing import PRESET_GROUPS, composed, inherited, plain
from tests.support.roots import FILES, choices_of, groups_of, pipeline_of

CONF = conf_folder.conf_dir()
YAMLS = [str(path.relative_to(CONF).with_suffix("")) for path in sorted(CONF.rglob("*.yaml"))]
COMPONENTS = {group: choices for group, choices in conf_folder.groups().items() if group not in PRESET_GROUPS}
"""Group -> its choices."""
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


NODES = {f"{yaml}:{name}": (name, node) for yaml in YAMLS for name, node in nodes(Path(yaml).stem, written(yaml))}

OWN_NUMBERS = {
    "ranking/unified:limit",  # its passages are short: half of a budget would be left
    *(f"ranking/lancedb_pro_beta11:{stage}" for stage in ("length_normalization", "time_decay")),  # sparing
    "ranking/lancedb_pro_beta11:noise_filter",  # with complaints
}
"""Nodes that are named like their target and differ from its defaults on purpose."""
DEFAULTS_BY_OTHER_NAMES = {
    "lcm.writing.admission.amac.Amac": "balanced",
    "lcm.retrieval.reinforcement.DecayTiers": "tiers",
    "lcm.memory.scopes.Scopes": "default",
    "lcm.memory.session.SessionRules": "default",
    "lcm.retrieval.source.indexes.TagPrefixes": "tags",
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


def test_a_yaml_begins_with_what_it_is() -> None:
    lines = {yaml: (CONF / f"{yaml}.yaml").read_text().splitlines() for yaml in YAMLS}
    first = {  # a preset says before it that it sets other groups
        yaml: text[1] if text[0] == "# @package _global_" else text[0] for yaml, text in lines.items()
    }
    assert [yaml for yaml, line in first.items() if not re.match(r"# \S.* \S.*", line)] == []


def rows_of(groups: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Few command lines in which every choice stands once: a first choice of each group, then a second, and so on."""
    for number in range(max(map(len, groups.values()), default=0)):
        yield {group: choices[number] for group, choices in groups.items() if number < len(choices)}


@pytest.mark.parametrize("pipeline", FILES)
def test_a_choice_composes_to_its_yaml(pipeline: str) -> None:
    """Beside choices of other groups: what a YAML holds does not depend on them."""
    groups = {group: choices for group, choices in COMPONENTS.items() if pipeline_of(group) == pipeline}
    wrong = []
    for row in rows_of(groups):
        config = composition.composed([f"{group}={choice}" for group, choice in row.items()], pipeline)
        wrong += [pair for pair in row.items() if OmegaConf.to_container(config[pair[0]]) != inherited("/".join(pair))]
    assert wrong == []


@pytest.mark.parametrize("group", COMPONENTS)
def test_every_choice_builds_beside_the_defaults(group: str) -> None:
    for choice in COMPONENTS[group]:
        config = composed([f"{group}={choice}"], pipeline_of(group))
        for key in {"memory", group} & set(config):
            built = building.build(config, key)
            assert built is not None, choice
            assert list(counters(built, choice, set())) == [], "the argument `incidents` counts what is survived"


def counters(part: Any, path: str, seen: set[int]) -> Iterator[str]:
    """Where a counter hangs on a component, or on any part of it."""
    if isinstance(part, Counter):
        yield path
    elif id(part) not in seen:
        seen.add(id(part))
        inner: dict[str, Any] = {}
        if is_dataclass(part):
            inner = {one.name: getattr(part, one.name) for one in fields(part)}
        elif isinstance(part, dict):
            inner = part
        elif isinstance(part, (list, tuple)):
            inner = dict(enumerate(part))
        elif type(part).__module__.startswith("lcm.") and hasattr(part, "__dict__"):
            inner = vars(part)
        for name, value in inner.items():
            yield from counters(value, f"{path}.{name}", seen)


@pytest.mark.parametrize("group", PRESET_GROUPS)
def test_a_preset_only_overrides_and_builds(group: str) -> None:
    for choice in conf_folder.groups()[group]:
        config = composition.composed([f"{group}={choice}"])
        assert set(config) - {"further_embedder"} == set(NO_PRESET), choice
        assert building.build(config, "memory") is not None, choice


def test_keys_are_the_constructors_parameters() -> None:
    assert NODES
    wrong = {
        place: set(node) ^ {"_target_", *parameters(node)}
        for place, (_, node) in NODES.items()
        if set(node) - {"_target_"} != set(parameters(node))
    }
    assert wrong == {}


def test_a_component_is_a_frozen_slotted_dataclass() -> None:
    kinds = {building.component(node["_target_"]) for _, node in NODES.values()}
    loose = [
        kind.__qualname__
        for kind in kinds
        if isinstance(kind, type)
        and not (is_dataclass(kind) and kind.__dataclass_params__.frozen and "__slots__" in vars(kind))  # type: ignore[attr-defined]
    ]
    assert sorted(loose) == []


def test_a_yaml_named_like_its_target_holds_the_defaults() -> None:
    differing = {}
    for place, (name, node) in NODES.items():
        module, class_name = node["_target_"].split(".")[-2:]
        own_names = (module, class_name.lower(), re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", class_name).lower())
        if name not in (*own_names, DEFAULTS_BY_OTHER_NAMES.get(node["_target_"])):
            continue  # a preset of its class
        held = plainly(node)
        defaults = {
            key: default
            for key, parameter in parameters(node).items()
            if (default := default_of(parameter, target(node))) is not inspect.Parameter.empty and key in held
        }
        if {key: held[key] for key in defaults} != defaults:
            differing[place] = defaults
    assert set(differing) == OWN_NUMBERS


def default_of(parameter: inspect.Parameter, of: type) -> Any:
    """What a parameter is without an argument, a tuple as a list; of a factory what it makes."""
    default = parameter.default
    if is_dataclass(of):
        (field,) = (field for field in fields(of) if field.name == parameter.name)
        default = default if field.default_factory is MISSING else field.default_factory()
    return list(default) if isinstance(default, tuple) else default


def plainly(node: dict[str, Any]) -> dict[str, Any]:
    """The keys of a node: nested nodes, in maps too, as the objects that they describe, without those that refer
    elsewhere."""
    own = {key: value for key, value in node.items() if not refers(value)}
    return {
        key: building.build(OmegaConf.create({key: value}), key)
        if isinstance(value, dict) and "_target_" in str(value)
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


def overridden(system: str) -> dict[str, list[str]]:
    """The groups that a system chooses for, each with all its choices."""
    entries = [key for entry in plain(f"system/{system}")["defaults"] if entry != "_self_" for key in entry]
    groups = [key.removeprefix("override /") for key in entries if "@" not in key]
    return {group: conf_folder.groups()[group] for group in groups}


def test_choices_on_the_command_line_win_over_a_system() -> None:
    """The last choice of every group that the system chooses for, all at once, wherever they stand."""
    for system in conf_folder.groups()["system"]:
        row = {group: choices[-1] for group, choices in overridden(system).items()}
        swaps, preset = [f"{group}={choice}" for group, choice in row.items()], f"system={system}"
        before, after = composition.composed([*swaps, preset]), composition.composed([preset, *swaps])
        assert before == after
        for group, choice in row.items():
            chosen = OmegaConf.merge(inherited(f"{group}/{choice}"), plain(f"system/{system}").get(group, {}))
            assert after[group] == chosen, (system, group, choice)


def test_a_choice_of_a_group_that_a_system_leaves_alone_stands_beside_it() -> None:
    beside = composition.composed(["system=lancedb_pro", "vector_index=hnsw"])
    assert OmegaConf.to_container(beside.vector_index) == plain("vector_index/hnsw")
    assert OmegaConf.to_container(beside.ranking) == plain("ranking/lancedb_pro")
