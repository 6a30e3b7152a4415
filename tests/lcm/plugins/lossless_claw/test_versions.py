"""The settings of lossless-claw 0.15.3: what they resolve to, and which keys of ours they are."""

from pathlib import Path
from typing import Any

import pytest

from lcm.plugins.lossless_claw.settings import NEWEST, SETTINGS, resolve, unusable, yaml_overrides
from lcm.plugins.settings.environment import settings
from lcm.plugins.settings.reading import ImportedSettings, read
from lcm.plugins.settings.table import ABSENT, InexpressibleError, at, check
from lcm.plugins.settings.tables import named_table
from pipelines.config.preset_config import RECALL, plugin_default, shipped_choices

NEW = named_table("lossless_claw@0.15")


def found(env: dict[str, str], plugin: dict[str, Any]) -> dict[str, Any]:
    return resolve(env, plugin, home=Path("/home/me"), settings=NEWEST)


@pytest.mark.parametrize(
    ("env", "plugin", "name", "value"),
    [
        ({"LCM_SWEEP_MAX_DEPTH": "x", "LCM_INCREMENTAL_MAX_DEPTH": "3"}, {"sweepMaxDepth": 2}, "sweep_max_depth", 3),
        ({}, {"incrementalMaxDepth": 4}, "sweep_max_depth", 4),
        ({}, {"incrementalMaxDepth": 4, "sweepMaxDepth": 0}, "sweep_max_depth", 0),
        ({"LCM_FALLBACK_MAX_TOKENS": "63"}, {"fallbackMaxTokens": 64}, "fallback_max_tokens", 64),
        ({}, {"fallbackMaxTokens": 64.5}, "fallback_max_tokens", 512),
        ({"LCM_MAX_SWEEP_ITERATIONS": "0"}, {"maxSweepIterations": 5}, "max_sweep_iterations", 1),
        ({}, {"summaryPrefixTargetTokens": 700.9}, "summary_prefix_target_tokens", 700),
        ({}, {}, "summary_prefix_target_tokens", None),
        ({}, {"replayFloodThresholdExternal": 0}, "replay_flood_threshold_external", 3),
        ({}, {"cacheAwareCompaction": {"hotCacheBudgetHeadroomRatio": 2}},
         "cache_aware_compaction.hot_cache_budget_headroom_ratio", 0.95),
        ({}, {"cacheAwareCompaction": "on"}, "cache_aware_compaction.enabled", True),
        ({"LCM_CACHE_TTL_SECONDS": "9"}, {}, "cache_aware_compaction.cache_ttl_seconds", 9),
        ({}, {"leafChunkTokens": 30}, "dynamic_leaf_chunk_tokens.max", 60),
        ({}, {"dynamicLeafChunkTokens": {"max": 9}}, "dynamic_leaf_chunk_tokens.max", 20000),
        ({"LCM_HOST_FALLBACK_MODE": "x"}, {"hostFallbackMode": "capture-only"}, "host_fallback_mode", "error"),
        ({}, {"proactiveThresholdCompactionMode": " Inline "}, "proactive_threshold_compaction_mode", "inline"),
        ({"LCM_PROACTIVE_THRESHOLD_COMPACTION_MODE": "x"}, {"proactiveThresholdCompactionMode": "inline"},
         "proactive_threshold_compaction_mode", "inline"),
        ({"LCM_FALLBACK_PROVIDERS": "a/b, c/d/e,/x,y/"}, {}, "fallback_providers",
         [{"provider": "a", "model": "b"}, {"provider": "c", "model": "d/e"}]),
        ({"LCM_FALLBACK_PROVIDERS": "/"}, {"fallbackProviders": [{"provider": "p", "model": "m"}, {"provider": "q"}]},
         "fallback_providers", [{"provider": "p", "model": "m"}]),
        ({"LCM_STRIP_INJECTED_CONTEXT_TAGS": ""}, {}, "strip_injected_context_tags", []),
        ({"OPENCLAW_STATE_DIR": "/state"}, {}, "database_path", "/state/lcm.db"),
        ({}, {}, "large_files_dir", "/home/me/.openclaw/lcm-files"),
        ({}, {"independentLogFile": {"file": " /l "}}, "independent_log_file.file", "/l"),
        ({}, {"contextThresholdOverrides": [{"contextThreshold": 0.5}]}, "context_threshold_overrides",
         [{"contextThreshold": 0.5}]),
    ],
)  # fmt: skip
def test_a_setting_is_used_as_the_newer_version_uses_it(env, plugin, name, value):
    assert found(env, plugin).get(name) == value


def test_the_manifest_takes_61_settings_those_of_the_older_version_among_them() -> None:
    taken = NEW.schema()["properties"]
    assert len(taken) == 61
    assert named_table("lossless_claw@0.6").schema()["properties"].keys() < taken.keys()


def test_every_setting_has_a_key_of_ours_or_a_reason_why_it_has_none() -> None:
    assert [setting.name for setting in NEWEST if bool(setting.yaml_keys) == bool(setting.host_only)] == []
    assert {setting.name for setting in SETTINGS} - {setting.name for setting in NEWEST} == {"incremental_max_depth"}


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


def test_variables_of_the_newer_version_set_our_keys_or_are_told_to_have_no_effect() -> None:
    env = {"LCM_PROMPT_AWARE_EVICTION_ENABLED": "true", "LCM_SWEEP_DEADLINE_MS": "0", "LCM_FALLBACK_MAX_TOKENS": "9"}
    assert yaml_overrides(env) == {"assembly.eviction": "relevance", "compaction.sweep_deadline_seconds": 0.001}
    assert unusable(env) == ["LCM_FALLBACK_MAX_TOKENS='9' cannot be read and has no effect"]
    assert "has no effect: its host keeps the log" in unusable({"LCM_LOG_FILE": "/l"})[0]
