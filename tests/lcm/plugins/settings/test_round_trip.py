"""import after export is the identity on whatever a plugin has a setting for."""

import copy
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lcm.plugins.settings.environment import parsed, rendered, settings, variables
from lcm.plugins.settings.tables import ABSENT, TABLES, Row, Table, at, check, put
from lcm.plugins.settings.translation import applied, differences, is_meant, read, written
from tests.lcm.plugins.settings.conftest import KNOWN, Plugin

WORDS = st.text(string.ascii_letters + string.digits + " .:/$'\"#äß東=", min_size=1, max_size=12).map(str.strip)
NAMES = st.text(string.ascii_uppercase + "_", min_size=1, max_size=12)
ITEMS = WORDS.filter(bool)


def values_of(row: Row) -> st.SearchStrategy[Any]:
    """Everything that a setting may be, and that the plugin does as it is told."""
    schema = row.schema
    if row.path.lower().endswith("apikey"):
        return NAMES.map(lambda name: f"${{{name}}}")
    if row.path == "topK":
        return st.integers(1, 500)  # a fraction is rounded, up and down
    if row.path == "retrieval.candidatePoolSize":
        return st.integers(10, 20)  # the store gives no more
    if row.path == "scopes.definitions":
        return st.dictionaries(ITEMS, WORDS.map(lambda text: {"description": text}) | st.just({}), max_size=3)
    if row.path == "scopes.agentAccess":
        return st.dictionaries(ITEMS, st.lists(ITEMS, max_size=3), max_size=3)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    return {
        "boolean": st.booleans(),
        "integer": st.integers(schema.get("minimum", -5), schema.get("maximum", 10**7)),
        "number": st.floats(
            schema.get("exclusiveMinimum", schema.get("minimum", -10)),
            schema.get("maximum", 1000),
            exclude_min="exclusiveMinimum" in schema,
        ),
        "string": ITEMS,
        "array": st.lists(ITEMS, max_size=3),
    }[schema["type"]]


def drawn(data: st.DataObject, plugin: Plugin) -> dict[str, Any]:
    """A configuration of ours that the plugin can be told of, whole."""
    config = copy.deepcopy(plugin.base)
    for group, known in plugin.table.choices.items():
        names = [choice.name for choice in known if choice.settings]
        optional = [choice.name for choice in known if not choice.settings]
        chosen = data.draw(st.sampled_from([*names, *optional, *([] if names else ["as it is"])]), label=group)
        if chosen in plugin.choices[group]:
            config[group] = copy.deepcopy(plugin.choices[group][chosen])
    if "adapter" in config["authored"]:
        config["authored"]["adapter"] = data.draw(st.sampled_from(["generic", "obsidian"]))
    for row in plugin.table.rows:
        if row.keys and at(config, row.keys[0].path) is not ABSENT:
            if not is_meant(plugin.table, row, config, plugin.choices):
                continue
            value = data.draw(values_of(row), label=row.path)
            for key in row.keys:
                ours = key.read(value)
                if ours is not ABSENT:
                    put(config, key.path, ours)
    return config


def imported(plugin: Plugin, document: dict[str, Any], by_variable: dict[str, Any]) -> dict[str, Any]:
    found = read(plugin.table, document, by_variable)
    assert not found.ignored
    config = copy.deepcopy(plugin.base)
    for group, choice in found.choices.items():
        if choice in plugin.choices.get(group, {}):
            config[group] = copy.deepcopy(plugin.choices[group][choice])
        else:
            assert choice == "none"
    return applied(config, found.values)


@pytest.mark.parametrize("name", KNOWN)
def test_import_after_export_is_the_identity(name: str, plugins: dict[str, Plugin]) -> None:
    plugin = plugins[name]

    @given(st.data())
    @hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def law(data: st.DataObject) -> None:
        config = drawn(data, plugin)
        told = written(plugin.table, config, config, plugin.choices)
        assert told.refused == {}
        check(told.document, plugin.table.schema(), name)
        again = imported(plugin, told.document, told.by_variable)
        assert [found for group in config for found in differences(group, config[group], again.get(group))] == []
        once_more = written(plugin.table, again, again, plugin.choices)
        assert (once_more.document, once_more.by_variable) == (told.document, told.by_variable)

    law()


@given(st.data())
@hypothesis_settings(max_examples=20, deadline=None)
def test_variables_say_what_the_file_says(data: st.DataObject) -> None:
    table: Table = TABLES["lossless_claw"]
    document: dict[str, Any] = {}
    for row in table.rows:
        if row.environment and data.draw(st.booleans()):
            document[row.path] = data.draw(values_of(row), label=row.path)
    text = rendered(variables(table, document, {}), "of a test")
    said = settings(table, text, "test.env")
    with_commas = {path for path, value in document.items() if isinstance(value, list) and "," in "".join(value)}
    assert said == {path: value for path, value in document.items() if path not in with_commas}


@given(st.dictionaries(NAMES, st.text(st.characters(blacklist_characters="\0\r", blacklist_categories=["Cs"]))))
def test_a_file_of_variables_is_read_back(values: dict[str, str]) -> None:
    assert parsed(rendered(values, "of a test"), "test.env") == values
