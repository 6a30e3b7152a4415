"""What export writes into a plugin's file, and what it says of a value that the plugin has none for."""

import copy
from typing import Any

import pytest

from lcm.plugins.settings.environment import variables
from lcm.plugins.settings.tables import TABLES, milliseconds, put, tidy
from lcm.plugins.settings.translation import Difference, ExportedSettings, differences, written
from tests.lcm.plugins.settings.conftest import Plugin


def told(plugin: Plugin, key: str, value: Any, **chosen: str) -> ExportedSettings:
    config = copy.deepcopy(plugin.base)
    for group, choice in chosen.items():
        config[group] = copy.deepcopy(plugin.choices[group][choice])
    put(config, key, value)
    return written(plugin.table, config, config, plugin.choices)


def test_the_switch_of_folders_is_written_with_them(plugins: dict[str, Plugin]) -> None:
    for paths in (["/notes"], []):
        document = told(plugins["libravdb"], "authored.paths", paths, authored="libravdb").document
        assert (document["markdownIngestionRoots"], document["markdownIngestionEnabled"]) == (paths, True)


@pytest.mark.parametrize(
    ("name", "key", "value", "why"),
    [
        ("lancedb_pro", "extraction.roles", ["tool"], "captureAssistant chooses between [user] and [user, assistant]"),
        ("lancedb_pro", "fusion.dense_weight", 1.5, "retrieval.vectorWeight: 1.5 is greater than the maximum of 1"),
        ("lossless_claw", "summarizer.custom_instructions", "x ", "the plugin trims its settings: take away"),
    ],
)
def test_a_value_that_the_plugin_has_none_for_is_refused_with_the_reason(name, key, value, why, plugins):
    (refused,) = told(plugins[name], key, value).refused.items()
    assert refused[0] == key
    assert refused[1].startswith(why)


def test_what_arithmetic_left_is_taken_away_and_no_more() -> None:
    assert tidy(0.1 + 0.2) == 0.3
    assert tidy(0.5) == 0.5
    assert milliseconds(0.0015) == 1.5
    assert isinstance(milliseconds(1.5), int)


def test_a_switch_is_no_number() -> None:
    assert list(differences("key", True, 1)) == [Difference("key", True, 1)]
    assert list(differences("key", 0.0, False)) == [Difference("key", 0.0, False)]
    assert list(differences("key", 1, 1.0)) == []


def test_a_list_with_a_comma_in_an_item_has_no_variable() -> None:
    """The plugin would split the item."""
    document = {"ignoreSessionPatterns": ["a,b", "c"], "statelessSessionPatterns": ["a", "b"]}
    found = variables(TABLES["lossless_claw"], document, {})
    assert found == {"LCM_STATELESS_SESSION_PATTERNS": "a,b"}
