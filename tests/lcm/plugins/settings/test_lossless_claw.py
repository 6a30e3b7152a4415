"""The settings of lossless-claw 0.15.3, and which keys of ours they are."""

import pytest

from lcm.plugins.settings.environment import settings
from lcm.plugins.settings.tables import ABSENT, TABLES, InexpressibleError, at, check, named_table
from lcm.plugins.settings.translation import ImportedSettings, read
from pipelines.config.presets import RECALL, plugin_default, shipped_choices

NEW = named_table("lossless_claw@0.15")


def test_the_manifest_takes_61_settings_those_of_the_older_version_among_them() -> None:
    taken = NEW.schema()["properties"]
    assert len(taken) == 61
    assert named_table("lossless_claw@0.6").schema()["properties"].keys() < taken.keys()


def test_the_newer_version_has_every_setting_of_the_older() -> None:
    assert {row.path for row in TABLES["lossless_claw"].rows} < {row.path for row in NEW.rows}


def test_an_empty_file_means_what_the_preset_of_the_version_says() -> None:
    base, _ = plugin_default(NEW, ImportedSettings({}, {}))
    base[RECALL] = shipped_choices({RECALL: ["lossless_claw_0_15"]})[RECALL]["lossless_claw_0_15"]
    values = read(NEW, {}).values
    assert [key for key in values if at(base, key) is ABSENT] == []
    differing = {key: value for key, value in values.items() if at(base, key) != value}
    assert differing.keys() == {"language_model.model.timeout_seconds"}  # a summary waits 60 s there


def test_older_names_are_read_where_the_newer_is_not_given() -> None:
    older = {"incrementalMaxDepth": 3, "largeFileTokenThreshold": 9000}
    check(older, NEW.schema(), NEW.plugin)
    imported = read(NEW, older)
    assert imported.values["compaction.incremental_max_depth"] == 3
    assert imported.values["session.large_file_threshold_tokens"] == 9000
    assert imported.ignored == {}
    assert read(NEW, older | {"sweepMaxDepth": 1}).values["compaction.incremental_max_depth"] == 1
    assert settings(NEW, "LCM_INCREMENTAL_MAX_DEPTH=2", "x.env") == {"incrementalMaxDepth": 2}


def test_what_the_plugin_reads_and_does_not_use_is_told() -> None:
    imported = read(NEW, {"dynamicLeafChunkTokens": {"enabled": False}, "promptAwareEviction": True})
    assert imported.ignored == {"dynamicLeafChunkTokens.enabled": "the plugin reads it and does nothing with it"}
    assert imported.values["assembly.eviction"] == "relevance"


def test_a_bound_of_time_that_is_none_cannot_be_told() -> None:
    row = NEW.by_path["sweepDeadlineMs"]
    assert row.write(1.5) == 1500
    with pytest.raises(InexpressibleError):
        row.write(None)
