"""The laws of `Authored`, over every YAML of its group."""

import copy
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from omegaconf import DictConfig

from lcm.context.authored import in_authored_order
from lcm.protocols.context import Authored
from pipelines.config import building, composition
from tests.support.authored_results import FILES, write_files
from tests.support.richest import once_a_class


@pytest.fixture(params=once_a_class("authored"))
def authored(request: pytest.FixtureRequest, tmp_path: Path) -> Authored:
    config = copy.deepcopy(composed(request.param))
    if "paths" in config.authored:
        config.authored.paths = [str(tmp_path)]
    return building.build(config, "authored")


@cache
def composed(choice: str) -> DictConfig:
    return composition.composed([f"authored={choice}"])


def test_ids_are_unique_and_nodes_come_in_authored_order(authored: Authored, tmp_path: Path) -> None:
    write_files(tmp_path)
    nodes = authored.nodes(incidents=Counter())
    assert len({node.node_id for node in nodes}) == len(nodes)
    assert nodes == in_authored_order(nodes)
    assert {node.source for node in nodes} in (set(), set(FILES))


def test_equal_files_give_equal_nodes(authored: Authored, tmp_path: Path) -> None:
    write_files(tmp_path)
    assert authored.nodes(incidents=Counter()) == authored.nodes(incidents=Counter())


def test_every_node_has_one_tier_and_hard_and_soft_text_is_whole(authored: Authored, tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "long.md").write_text("- " + "word " * 5000 + "\n\n> " + "word " * 5000)
    nodes = authored.nodes(incidents=Counter())
    assert {node.tier for node in nodes} <= {"hard", "soft", "variant"}
    assert [node.text.count("word") for node in nodes if node.source == "long.md"] in ([], [5000, 5000])


def test_without_files_there_are_no_nodes(authored: Authored) -> None:
    assert authored.nodes(incidents=Counter()) == []
