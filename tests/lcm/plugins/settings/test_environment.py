"""The variables of lossless-claw: how each is read, and which keys of ours it sets."""

from typing import Any

import pytest
import yaml

from lcm.plugins.settings.environment import counted_with, from_environment, unusable, yaml_overrides
from lcm.plugins.settings.tables import TABLES, named_table
from tests.conftest import ROOT

OLD, NEW = TABLES["lossless_claw"], named_table("lossless_claw@0.15")


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        ("leafChunkTokens", "12.9", 12),
        ("leafChunkTokens", "x", None),
        ("contextThreshold", "0.5x", 0.5),
        ("delegationTimeoutMs", "900x", None),  # a number and nothing else
        ("delegationTimeoutMs", "900", 900),
        ("delegationTimeoutMs", " 0x1F ", 31),
        ("delegationTimeoutMs", "0O17", 15),
        ("delegationTimeoutMs", "0b12", None),
        ("delegationTimeoutMs", "1e999", None),
        ("delegationTimeoutMs", f"0x{'f' * 300}", None),
        ("enabled", "no", True),  # anything but false
        ("pruneHeartbeatOk", "yes", False),  # nothing but true
        ("summaryModel", " ", ""),
        ("timezone", " ", None),
        ("ignoreSessionPatterns", " a, ,b", ["a", "b"]),
        ("fallbackMaxTokens", "63", None),
        ("replayFloodThresholdExternal", "1", 1),
        ("maxSweepIterations", "0", 0),
        ("proactiveThresholdCompactionMode", " Inline ", "inline"),
        ("proactiveThresholdCompactionMode", "x", None),
        ("hostFallbackMode", "X ", "X"),
        ("fallbackProviders", "a/b, c/d/e,/x,y/", [{"provider": "a", "model": "b"}, {"provider": "c", "model": "d/e"}]),
        ("fallbackProviders", "/", None),
        ("stripInjectedContextTags", "", []),
    ],
)
def test_a_variable_is_read_as_the_plugin_reads_it(setting: str, text: str, value: Any) -> None:
    row = NEW.by_path[setting]
    assert from_environment(row, {row.environment: text}) == value


def test_an_older_variable_counts_where_the_newer_cannot_be_used() -> None:
    row = NEW.by_path["sweepMaxDepth"]
    assert from_environment(row, {"LCM_SWEEP_MAX_DEPTH": "x", "LCM_INCREMENTAL_MAX_DEPTH": "3"}) == 3
    assert from_environment(row, {"LCM_SWEEP_MAX_DEPTH": "2", "LCM_INCREMENTAL_MAX_DEPTH": "3"}) == 2


def test_the_environment_overrides_our_keys_in_our_units() -> None:
    env = {"LCM_SUMMARY_TIMEOUT_MS": "1500", "LCM_FRESH_TAIL_COUNT": "8", "LCM_LEAF_MIN_FANOUT": "x", "TZ": "UTC"}
    assert yaml_overrides(env) == {
        "summarizer.timeout_seconds": 1.5,
        "language_model.model.timeout_seconds": 1.5,
        "compaction.fresh_tail_count": 8,
        "assembly.fresh_tail_count": 8,
    }
    assert yaml_overrides({"LCM_LEAF_CHUNK_TOKENS": "9", "LCM_BOOTSTRAP_MAX_TOKENS": "7"}) == {
        "compaction.leaf_chunk_tokens": 9,
        "session.bootstrap_max_tokens": 7,
    }


def test_the_preset_of_sessions_holds_the_plugins_defaults() -> None:
    preset = yaml.safe_load((ROOT / "conf/session/lossless_claw.yaml").read_text())
    found = {key.path: key.read(row.default_in({})) for row in OLD.rows for key in row.keys}
    of_sessions = {key: value for key, value in found.items() if key.startswith("session.")}
    assert len(of_sessions) == 7
    assert {key: preset[key.removeprefix("session.")] for key in of_sessions} == of_sessions


@pytest.mark.parametrize(
    ("settings", "counted"),
    [
        ({"leaf_chunk_tokens": 12.9, "leaf_min_fanout": 1}, [12, 1]),  # fractions are rounded down
        ({"leaf_min_fanout": 0, "condensed_min_fanout": -1}, [8, 4]),  # what is not above 0 is the default
        ({"condensed_min_fanout": 1.9, "condensed_min_fanout_hard": 0}, [1, 2]),
        ({"leaf_chunk_tokens": float("nan")}, [20000]),
        ({"fresh_tail_count": -1, "incremental_max_depth": -7}, [0, -1]),  # no tail; no limit of depth
        ({"fresh_tail_count": 3.9, "incremental_max_depth": 2.5}, [3, 2]),
    ],
)
def test_compaction_counts_with_numbers_of_its_own(settings: dict[str, float], counted: list[int]) -> None:
    assert counted_with(settings) == dict(zip(settings, counted, strict=True))


def test_a_variable_of_compaction_is_the_number_that_the_plugin_counts_with() -> None:
    assert yaml_overrides({"LCM_LEAF_MIN_FANOUT": "0", "LCM_INCREMENTAL_MAX_DEPTH": "-7"}) == {
        "compaction.leaf_min_fanout": 8,
        "compaction.incremental_max_depth": -1,
    }


def test_variables_of_the_newer_version_set_our_keys_or_are_told_to_have_no_effect() -> None:
    env = {"LCM_PROMPT_AWARE_EVICTION_ENABLED": "true", "LCM_SWEEP_DEADLINE_MS": "0", "LCM_FALLBACK_MAX_TOKENS": "9"}
    assert yaml_overrides(env) == {"assembly.eviction": "relevance", "compaction.sweep_deadline_seconds": 0.001}
    assert unusable(env) == ["LCM_FALLBACK_MAX_TOKENS='9' cannot be read and has no effect"]
    assert "has no effect: its host keeps the log" in unusable({"LCM_LOG_FILE": "/l"})[0]
