"""The tables of the plugins' settings, held against our configuration and the plugins' own example."""

from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lcm.plugins.settings.tables import ABSENT, TABLES, Row, at, check
from lcm.plugins.settings.translation import applied, read
from pipelines.config.presets import shipped_choices
from tests.lcm.plugins.settings.conftest import MINIMAL, Plugin

ROWS: Mapping[str, Row] = {f"{name}:{row.path}": row for name, table in TABLES.items() for row in table.rows}
PUBLISHED: Mapping[str, Any] = {
    "embedding": {"apiKey": "${EMBED_KEY}", "model": "text-embedding-3-small", "dimensions": 1536},
    "autoRecall": True,
    "recallMode": "adaptive",
    "autoRecallMinLength": 15,
    "retrieval": {"mode": "hybrid", "vectorWeight": 0.7, "rerank": "cross-encoder", "candidatePoolSize": 20},
    "decay": {"recencyHalfLifeDays": 30, "betaWorking": 1, "peripheralDecayFloor": 0.5},
    "tier": {"coreAccessThreshold": 10, "peripheralAgeDays": 60},
    "admissionControl": {
        "enabled": False,
        "preset": "balanced",
        "recency": {"halfLifeDays": 14},
        "weights": {"utility": 0.1, "confidence": 0.1, "novelty": 0.1, "recency": 0.1, "typePrior": 0.6},
        "typePriors": {"profile": 0.95, "patterns": 0.85},
    },
}
"""As memory-lancedb-pro documents itself."""


def test_a_setting_stands_once_with_a_key_or_a_reason_and_a_valid_default() -> None:
    assert len(ROWS) == sum(len(table.rows) for table in TABLES.values())
    assert [name for name, row in ROWS.items() if bool(row.keys) == bool(row.no_key)] == []
    given = {name: row for name, row in ROWS.items() if not callable(row.default) and row.default is not ABSENT}
    assert given
    assert [name for name, row in given.items() if not Draft202012Validator(row.schema).is_valid(row.default)] == []


@pytest.mark.parametrize("name", TABLES)
def test_no_object_of_a_schema_takes_a_key_that_it_does_not_list(name: str) -> None:
    schema = TABLES[name].schema()
    Draft202012Validator.check_schema(schema)
    nodes = [schema]
    while nodes:
        node = nodes.pop()
        if "properties" in node and "apiKey" not in node.get("description", ""):
            if node is not schema and "additionalProperties" not in node:
                continue  # an entry of a map of the user's own
            assert node["additionalProperties"] is False
            nodes += [child for child in node["properties"].values() if isinstance(child, dict)]


def test_the_manifest_of_lossless_claw_has_32_settings() -> None:
    """31 and the older name of one; the two of the circuit breaker are variables alone."""
    table = TABLES["lossless_claw"]
    assert len(table.schema()["properties"]) == 32
    outside = [row.path for row in table.rows if not row.in_manifest]
    assert outside == ["circuitBreakerThreshold", "circuitBreakerCooldownMs"]


@pytest.mark.parametrize("name", TABLES)
def test_every_key_stands_in_a_configuration(name: str, plugins: dict[str, Plugin]) -> None:
    """Of the plugin's defaults, or of a choice that it can make."""
    plugin = plugins[name]
    held = [plugin.base]
    for group, known in plugin.table.choices.items():
        held += [{group: plugin.choices[group][choice.name]} for choice in known]
    missing = [
        key.path
        for row in plugin.table.rows
        for key in row.keys
        if all(at(config, key.path) is ABSENT for config in held)
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lancedb_pro", {}),
        ("lossless_claw", {"language_model.model.timeout_seconds": (30.0, 60.0)}),  # a summary waits 60 s there
        ("libravdb", {}),
    ],
)
def test_an_empty_file_means_what_the_base_says(name: str, changed: dict[str, Any], plugins: dict[str, Plugin]) -> None:
    """Every default of the table is the default of the choices that stand for the plugin."""
    plugin = plugins[name]
    found = read(plugin.table, MINIMAL[name])
    differing = {
        key: (at(plugin.base, key), value)
        for key, value in found.values.items()
        if at(plugin.base, key) not in (ABSENT, value)
    }
    assert differing == changed


def test_of_the_published_example_what_is_read_is_told_apart_from_what_is_not() -> None:
    check(PUBLISHED, TABLES["lancedb_pro"].schema(), "memory-lancedb-pro")
    found = read(TABLES["lancedb_pro"], PUBLISHED)
    assert found.choices["admission"] == "none"
    assert found.choices["embedder"] == "openai_compatible"
    asked = {key: value for key, value in found.values.items() if key.startswith("embedder.")}
    assert asked == {
        "embedder.api_key_env": "EMBED_KEY",
        "embedder.model": "text-embedding-3-small",
        "embedder.dimensions": 1536,
    }
    assert found.ignored.keys() == {"autoRecall", "recallMode"}
    assert found.without_effect.keys() == {"tier.coreAccessThreshold", "tier.peripheralAgeDays"}


@pytest.mark.parametrize(
    ("retrieval", "choice"),
    [
        ({}, "none"),
        ({"rerank": "cross-encoder"}, "none"),
        ({"rerankApiKey": ""}, "none"),
        ({"rerankApiKey": "${JINA}"}, "remote"),
        ({"rerank": "cross-encoder", "rerankApiKey": "sk-2"}, "remote"),
    ],
)
def test_a_server_that_has_no_key_reranks_nothing(retrieval: dict[str, str], choice: str) -> None:
    found = read(TABLES["lancedb_pro"], {**MINIMAL["lancedb_pro"], "retrieval": retrieval})
    assert found.choices["reranker"] == choice
    told = found.changed.get("retrieval.rerank", "")
    assert told.startswith('"cross-encoder" is taken as reranker=none: without a key') is (choice == "none")
    for rerank in ("lightweight", "none"):  # which reorder nothing
        document = {**MINIMAL["lancedb_pro"], "retrieval": retrieval | {"rerank": rerank}}
        assert read(TABLES["lancedb_pro"], document).choices.get("reranker", "none") == "none"


def test_a_preset_of_admission_gives_what_is_not_given() -> None:
    control = {"enabled": True, "utilityMode": "off", "preset": "conservative", "rejectThreshold": 0.5}
    found = read(TABLES["lancedb_pro"], {**MINIMAL["lancedb_pro"], "admissionControl": control})
    assert found.choices["admission"] == "balanced"
    assert found.values["admission.reject_threshold"] == 0.5
    assert found.values["admission.admit_threshold"] == 0.68
    assert found.values["admission.weights.type_prior"] == 0.42


@pytest.mark.parametrize(
    ("name", "document", "values"),
    [
        # `session.leaf_chunk_tokens` stands for that of compaction; the first import moves with it.
        (
            "lossless_claw",
            {"leafChunkTokens": 80},
            {"compaction.leaf_chunk_tokens": 80, "session.bootstrap_max_tokens": 0},
        ),
        ("lancedb_pro", {"retrieval": {"candidatePoolSize": 60}}, {"source.dense_pool_size": 20}),  # the store's
        ("libravdb", {"markdownIngestionEnabled": False, "markdownIngestionRoots": ["/a"]}, {"authored.paths": None}),
    ],
)
def test_a_value_moves_or_bounds_others(name: str, document: dict[str, Any], values: dict[str, Any]) -> None:
    found = read(TABLES[name], {**MINIMAL[name], **document}).values
    assert {key: found.get(key) for key in values} == values


@pytest.mark.parametrize(
    ("name", "document", "told"),
    [
        ("lancedb_pro", {"retrieval": {"candidatePoolSize": 60}}, "60 is taken as 20 in source.dense_pool_size: the"),
        ("lancedb_pro", {"llm": {"apiKey": "sk-2"}}, "*** has no value of language_model.model.api_key_env: a key"),
        ("lancedb_pro", {"retrieval": {"rerankApiKey": "sk-2"}}, "*** has no value of reranker.api_key_env: a key"),
        (
            "lancedb_pro",
            {"scopes": {"definitions": {"team": {"description": "us", "color": "red"}}}},
            '{"team": {"description": "us", "color": "red"}} is taken as {"team": {"description": "us"}} in scopes.',
        ),
        ("libravdb", {"topK": 8.5}, "8.5 is taken as 8 in fusion.k2: a depth is a whole number"),
        (
            "libravdb",
            {"markdownIngestionRoots": ["/a*"]},
            'taken over into authored.paths as ["/a*"], though the plugin\'s roots are folders, no globs',
        ),
        ("lossless_claw", {"ignoreSessionPatterns": [" a", ""]}, '[" a", ""] is taken as ["a"] in session.ignore_'),
        ("lossless_claw", {"customInstructions": "x "}, 'as "x ", though the plugin trims'),
    ],
)
def test_a_value_that_is_read_as_another_is_told(name: str, document: dict[str, Any], told: str) -> None:
    found = read(TABLES[name], {**MINIMAL[name], **document})
    notes = {**found.ignored, **found.changed}
    notes.pop("retrieval.rerank", None)  # no key is given for it
    (why,) = notes.values()
    assert told in why


def test_a_value_that_is_the_default_anyway_is_not_told_of() -> None:
    """`stage(True)` and no name of a model leave our keys as they are."""
    for name, document in (
        ("lancedb_pro", {"retrieval": {"filterNoise": True, "rerank": "none"}, "llm": {"apiKey": "${KEY}"}}),
        ("lossless_claw", {"summaryModel": ""}),
        ("libravdb", {"topK": 8.0}),
    ):
        found = read(TABLES[name], {**MINIMAL[name], **document})
        assert found.ignored == found.changed == {}


def test_a_variable_stands_above_the_file() -> None:
    found = read(TABLES["lossless_claw"], {"freshTailCount": 8}, {"freshTailCount": 9})
    assert found.values["compaction.fresh_tail_count"] == found.values["assembly.fresh_tail_count"] == 9


def test_a_whole_number_stays_a_fraction_where_one_stood() -> None:
    config = applied({"decay": {"rate": 1.5}, "count": 2}, {"decay.rate": 14, "count": 3, "elsewhere": 1})
    assert config == {"decay": {"rate": 14.0}, "count": 3}
    assert isinstance(config["decay"]["rate"], float)


@pytest.mark.parametrize("preset", ["balanced", "conservative", "high-recall"])
def test_a_preset_of_admission_is_the_choice_of_its_name(preset: str) -> None:
    table = TABLES["lancedb_pro"]
    document = {**MINIMAL["lancedb_pro"], "admissionControl": {"enabled": True, "preset": preset, "utilityMode": "off"}}
    values = read(table, document).values
    config = {"admission": shipped_choices({"admission": [preset.replace("-", "_")]})["admission"].popitem()[1]}
    numbers = {key: value for key, value in values.items() if key.startswith("admission.")}
    assert len(numbers) == 15
    assert {key: at(config, key) for key in numbers} == numbers
