from pathlib import Path

import pytest
import yaml

from lcm.plugins.lossless_claw.settings import SETTINGS, counted_with, resolve, yaml_overrides
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("env", "plugin", "name", "value"),
    [
        ({"LCM_LEAF_CHUNK_TOKENS": "12.9"}, {}, "leaf_chunk_tokens", 12),
        ({"LCM_LEAF_CHUNK_TOKENS": "x"}, {"leafChunkTokens": 12.9}, "leaf_chunk_tokens", 12.9),
        ({}, {"leafChunkTokens": "12x"}, "leaf_chunk_tokens", 20000),
        ({}, {"leafChunkTokens": " 0x1F "}, "leaf_chunk_tokens", 31),
        ({}, {"leafChunkTokens": "0b101"}, "leaf_chunk_tokens", 5),
        ({}, {"leafChunkTokens": "0O17"}, "leaf_chunk_tokens", 15),
        ({}, {"leafChunkTokens": "-0b1"}, "leaf_chunk_tokens", 20000),
        ({}, {"leafChunkTokens": "0b12"}, "leaf_chunk_tokens", 20000),
        ({}, {"leafChunkTokens": "1e999"}, "leaf_chunk_tokens", 20000),
        ({}, {"leafChunkTokens": f"0x{'f' * 300}"}, "leaf_chunk_tokens", 20000),
        ({"LCM_DELEGATION_TIMEOUT_MS": "900x"}, {}, "delegation_timeout_ms", 120000),
        ({"LCM_DELEGATION_TIMEOUT_MS": "900"}, {}, "delegation_timeout_ms", 900),
        ({"LCM_ENABLED": "no"}, {"enabled": False}, "enabled", True),
        ({"LCM_PRUNE_HEARTBEAT_OK": "yes"}, {"pruneHeartbeatOk": True}, "prune_heartbeat_ok", False),
        ({"LCM_SUMMARY_MODEL": " "}, {"summaryModel": "m"}, "summary_model", ""),
        ({"LCM_IGNORE_SESSION_PATTERNS": " a, ,b"}, {}, "ignore_session_patterns", ["a", "b"]),
        ({}, {"ignoreSessionPatterns": ["a", " ", 3]}, "ignore_session_patterns", ["a"]),
        ({}, {"ignoreSessionPatterns": "a,b"}, "ignore_session_patterns", ["a", "b"]),
        ({}, {"leafChunkTokens": 80000}, "bootstrap_max_tokens", 24000),  # floor(0.3 * 80000)
        ({}, {"largeFileTokenThreshold": 6000}, "large_file_token_threshold", 6000),
        ({}, {}, "database_path", "/home/me/.openclaw/lcm.db"),
        ({"LCM_MAX_ASSEMBLY_TOKEN_BUDGET": "9000"}, {}, "max_assembly_token_budget", 9000),
        ({}, {}, "max_assembly_token_budget", None),
        ({}, {"timezone": "Asia/Tokyo"}, "timezone", "Asia/Tokyo"),
    ],
)
def test_a_setting_is_read_from_the_environment_then_the_plugin_then_the_default(env, plugin, name, value):
    assert resolve(env, plugin, home=Path("/home/me")).get(name) == value


def test_every_setting_has_a_key_of_ours_or_a_reason_why_it_has_none() -> None:
    assert [setting.name for setting in SETTINGS if bool(setting.yaml_keys) == bool(setting.host_only)] == []
    keys = {key for setting in SETTINGS if setting.in_manifest for key in setting.plugin_keys}
    assert len(keys - {"largeFileTokenThreshold"}) == 32  # the manifest refuses that one


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
    resolved = resolve({}, {}) | {"bootstrap_max_tokens": 0}  # worked out by the rules, from a leaf chunk
    for setting in SETTINGS:
        for key in setting.yaml_keys:
            if key.startswith("session."):
                assert preset[key.removeprefix("session.")] == setting.yaml_value(resolved[setting.name]), key


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
