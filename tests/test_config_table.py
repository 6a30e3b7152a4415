"""The settings of lossless-claw: each is a key of ours that acts, or has a reason to be none.

What stands in the environment stands above every preset, and below the command line.
"""

import logging
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from lcm.memory.session import SessionRules
from lcm.plugins.settings.tables import TABLES
from pipelines.config import building, command_line, composition, conf_folder
from tests.support import composing
from tests.support.knobs.knob import KNOBS
from tests.support.knobs.reasons import REASONS
from tests.support.roots import pipeline_of

SYSTEM = "system=lossless_claw"
CHOICES = {
    "assembly": "lossless_claw",
    "compaction": "lossless_claw",
    "session": "lossless_claw",
    "summarizer": "llm",
    "language_model": "openai_compatible",
    "recall": "lossless_claw",
}
"""What the system chooses, and the groups that some settings need beside it."""
WAITS = {"language_model.model.timeout_seconds", "summarizer.timeout_seconds"}
"""How long something may take: no reply depends on it, so its own tests stall a server."""
ROWS = TABLES["lossless_claw"].rows
KEYS = [key.path for row in ROWS for key in row.keys]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in ROWS:
        monkeypatch.delenv(row.environment or row.path, raising=False)


def composed(*arguments: str) -> DictConfig:
    """What `lcm evaluate` composes of a command line."""
    return composition.composed(command_line.command(list(arguments)).overrides)


def test_a_setting_has_a_key_or_a_reason() -> None:
    assert [row.path for row in ROWS if bool(row.keys) == bool(row.no_key)] == []


def test_a_key_stands_in_the_configuration_of_the_system() -> None:
    missing = []
    for key in KEYS:
        pipeline = pipeline_of(key.partition(".")[0])
        beside = [f"{name}={choice}" for name, choice in CHOICES.items() if pipeline_of(name) == pipeline]
        system = [SYSTEM] if pipeline == conf_folder.EVALUATE else ["language_model=openai_compatible"]
        config = composing.composed([*system, *beside], pipeline)
        if OmegaConf.select(config, key, default=missing) is missing:
            missing.append(key)
    assert missing == []


def test_turning_a_key_changes_behaviour() -> None:
    """Every knob that has no reason changes what its component gives: `test_knobs` turns it."""
    knobs = {key: f"{group}/{CHOICES[group]}:{path}" for key in KEYS for group, _, path in [key.partition(".")]}
    assert set(knobs.values()) <= {str(knob) for knob in KNOBS}
    assert {key for key, knob in knobs.items() if knob in REASONS} == WAITS


def test_the_defaults_of_the_system_are_the_originals() -> None:
    config = composition.composed([SYSTEM])
    differing = {
        key.path: (row.path, OmegaConf.select(config, key.path))
        for row in ROWS
        for key in row.keys
        if key.path.partition(".")[0] in ("assembly", "compaction", "session")
        if key.read(row.default_in({})) != OmegaConf.select(config, key.path)
    }
    assert differing == {}


VARIABLES = [
    # variable, its text, the key, its value; and what a command line says that stands above it
    ("CONTEXT_THRESHOLD", "0.5", "compaction.context_threshold", 0.5, "0.6", 0.6),
    ("LARGE_FILE_TOKEN_THRESHOLD", "30000", "session.large_file_threshold_tokens", 30_000, "7", 7),
    ("FRESH_TAIL_COUNT", "7", "compaction.fresh_tail_count", 7, "8", 8),
    ("FRESH_TAIL_COUNT", "7", "assembly.fresh_tail_count", 7, "8", 8),
    ("CIRCUIT_BREAKER_COOLDOWN_MS", "60000", "compaction.circuit_breaker_cooldown_seconds", 60.0, "7.5", 7.5),
    ("IGNORE_SESSION_PATTERNS", "a:*:c:**, b", "session.ignore_patterns", ["a:*:c:**", "b"], "[c]", ["c"]),
    ("PRUNE_HEARTBEAT_OK", "true", "session.prune_heartbeats", True, "false", False),
    ("SKIP_STATELESS_SESSIONS", "false", "session.skip_stateless", False, "true", True),
    *(
        ("CUSTOM_INSTRUCTIONS", text, "summarizer.custom_instructions", text, "none", "none")
        for text in ("Say \"so\", not 'thus'.", "東京 😀 a, b: [c] {d} = e", "One.\nC:\\temp, ${two}")
    ),
]


@pytest.mark.parametrize(("name", "text", "key", "value", "written", "asked"), VARIABLES)
def test_a_variable_stands_above_the_preset_and_below_the_command_line(
    name: str, text: str, key: str, value: Any, written: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = [SYSTEM, "summarizer=llm", "language_model=openai_compatible"]
    assert OmegaConf.select(composing.composed(beside), key) != value
    monkeypatch.setenv(f"LCM_{name}", text)
    assert OmegaConf.select(composed(*beside), key) == value
    assert OmegaConf.select(composed(f"{key}={written}", *beside), key) == asked


def test_a_choice_on_the_command_line_leaves_a_variable_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CONTEXT_THRESHOLD", "0.5")
    config = composed(SYSTEM, "compaction=lossless")
    assert (config.compaction.context_threshold, config.compaction.rules) == (0.5, "corrected")


def test_a_variable_without_its_key_is_passed_over_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = composed(SYSTEM)
    monkeypatch.setenv("LCM_CUSTOM_INSTRUCTIONS", "Name every ship.")  # of summarizer=llm
    with caplog.at_level(logging.WARNING):
        assert composed(SYSTEM) == before
    assert "summarizer.custom_instructions" in caplog.text


def test_what_cannot_be_used_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = composed(SYSTEM)
    monkeypatch.setenv("LCM_CONTEXT_THRESHOLD", "much")
    assert composed(SYSTEM) == before


def test_no_setting_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [key for key in KEYS if "api_key" in key or "profile" in key]
    before = composed(SYSTEM, "language_model=openai_compatible")
    for name in ("OPENROUTER_API_KEY", "LCM_API_KEY", "LCM_SUMMARY_API_KEY"):
        monkeypatch.setenv(name, "sk-secret")
    asked = command_line.command([SYSTEM, "language_model=openai_compatible"])
    assert "sk-secret" not in repr(asked)
    assert composition.composed(asked.overrides) == before


@pytest.mark.parametrize(
    ("overrides", "most"),
    [
        ((), 6000),
        (("compaction.leaf_chunk_tokens=80000",), 24_000),
        (("compaction.leaf_chunk_tokens=80000", "session.bootstrap_max_tokens=7"), 7),
        (("compaction=none",), 6000),
    ],
)
def test_the_first_import_follows_the_leaf_chunk_of_the_compaction(overrides: tuple[str, ...], most: int) -> None:
    rules: SessionRules = building.build(composition.composed([SYSTEM, *overrides]), "session")
    assert rules.first_import_tokens == most
