"""The choices of a group as parameters: one YAML of each class in CI, the others of that class in `make test-all`."""

from collections.abc import Iterable
from typing import Any

import pytest

from pipelines.config import conf_folder
from tests.support.composing import inherited


def once_a_class(group: str) -> list[Any]:
    """Return every choice of a group; those that are not the richest of their class are marked `full`."""
    nodes = {choice: inherited(f"{group}/{choice}") for choice in conf_folder.groups()[group]}
    chosen = richest((node["_target_"], choice, node) for choice, node in nodes.items())
    return [pytest.param(choice, marks=[] if choice in chosen else pytest.mark.full, id=choice) for choice in nodes]


def richest(nodes: Iterable[tuple[str, Any, Any]]) -> set[Any]:
    """Return the name of one node of each class: the one with the most settings that are on.

    Args:
        nodes: class, name and settings of each; of equally rich ones the first counts.
    """
    best: dict[str, tuple[int, Any]] = {}
    for target, name, node in nodes:
        settings = settings_on(node)
        if target not in best or settings > best[target][0]:
            best[target] = (settings, name)
    return {name for _, name in best.values()}


def settings_on(node: Any) -> int:
    """Count the leaves that are neither null, false, zero nor empty."""
    if isinstance(node, dict):
        return sum(settings_on(child) for child in node.values())
    if isinstance(node, list):
        return sum(settings_on(child) for child in node)
    return int(bool(node))
