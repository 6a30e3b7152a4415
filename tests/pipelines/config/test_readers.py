"""Readers: each key of a configuration is read by a part, or nothing depends on it."""

import json
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from lcm.consent import COMMANDS
from lcm.plugins.settings.tables import at
from pipelines.config import conf_folder
from pipelines.config.building import as_written
from pipelines.config.composition import composed_whole, without_hydra
from pipelines.config.contracts import UnreadKey, keys_unread, parts_read
from pipelines.config.overrides import quoted
from pipelines.steps.point import READ
from tests.conftest import ROOT
from tests.pipelines.conftest import Lcm
from tests.support.component_results import outcome
from tests.support.composing import composed
from tests.support.external_results import stand_in
from tests.support.knobs.knob import KNOBS

SYSTEMS = ["ranking=hybrid", *(f"system={name}" for name in conf_folder.groups()["system"])]
"""The defaults, and every preset of a system."""
PLAIN = ("embedder=hashing", "arms=none", "tracking=none", "measures=retrieval", "cache=false")
ANSWERING = stand_in("")
STANDING_IN = {
    "system=unified_two_embedders": ("embedder@further_embedder=token_sum",),
    "system=external": (f"external.command={quoted(ANSWERING)}",),
}
"""Preset -> what stands in for a model or a program that it asks for."""
BY_NAME = {str(knob): knob for knob in KNOBS}


@cache
def unread(*overrides: str) -> dict[str, UnreadKey]:
    return {one.key: one for one in keys_unread(as_written(composed(list(overrides))), READ)}


def read_by(*overrides: str) -> dict[str, str]:
    parts = parts_read(as_written(composed(list(overrides))), READ)
    return {key: part.name for part in parts for key in part.keys}


def leaves(node: Any, path: str = "") -> set[str]:
    if not isinstance(node, dict) or not node:
        return set() if isinstance(node, str) and (node in REFERENCES or node.startswith("${...")) else {path}
    return {
        leaf
        for name, child in node.items()
        if name != "_target_"
        for leaf in leaves(child, f"{path}.{name}" if path else name)
    }


REFERENCES = {f"${{{group}}}" for group in conf_folder.groups()} | {
    *("${tracking}", "${further_embedder}"),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_key_is_read_or_told_and_a_knob_that_the_knob_test_turns(system: str) -> None:
    config = as_written(composed([system]))
    told = {one.key for one in keys_unread(config, READ)}
    read = {key: value for part in parts_read(config, READ) for key, value in part.keys.items()}
    assert not told & read.keys()
    assert told | read.keys() == leaves(config)
    plain = [] if system.startswith("system=") else ["system=hybrid"]  # as `composed` lays around it
    choices = composed_whole([*plain, system]).hydra.runtime.choices
    own = {key for key, value in read.items() if not str(value).startswith("${")}
    assert {key for key in own if knob_of(key, choices) not in BY_NAME} == set()


def knob_of(key: str, choices: Mapping[str, str]) -> str:
    """The knob test's name of a key."""
    for place, choice in choices.items():
        group, _, package = place.partition("@")
        if package and key.startswith(f"{package}."):
            return f"{group}/{choice}:{key.removeprefix(f'{package}.')}"
    group, _, path = key.partition(".")
    if group == "measures":
        return f"measures/{path.partition('.')[0]}:{path}"
    return inherited(group, choices[group], path) if group in choices else f"config:{key}"


def inherited(group: str, choice: str, path: str) -> str:
    """The name of a choice's knob, or of the choice's that it is written upon."""
    name = f"{group}/{choice}:{path}"
    above = OmegaConf.load(ROOT / "conf" / group / f"{choice}.yaml").get("defaults", [])
    parents = [inherited(group, parent, path) for parent in above if isinstance(parent, str) and parent != "_self_"]
    return next((parent for parent in parents if name not in BY_NAME and parent in BY_NAME), name)


@pytest.mark.parametrize("system", SYSTEMS[:1] + [pytest.param(one, marks=pytest.mark.full) for one in SYSTEMS[1:]])
def test_no_number_depends_on_a_key_that_nothing_reads(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMANDS, shlex.join(ANSWERING))
    overrides = [system, *PLAIN, *STANDING_IN.get(system, ())]
    whole = composed_whole(overrides)
    choices = dict(whole.hydra.runtime.choices)
    config = without_hydra(whole)
    before, idle = outcome(config), keys_unread(as_written(config), READ)
    for one in idle:
        if knob := BY_NAME.get(knob_of(one.key, choices)):
            OmegaConf.update(config, one.key, knob.another(tmp_path), force_add=True)
        else:
            assert "${" in str(at(as_written(config), one.key)), f"{one.key} is no knob, and no reference to one"
    after = outcome(config)
    assert after.run.equals(before.run)
    assert after.values.equals(before.values)


def test_a_key_that_nothing_reads_is_told_with_its_reason() -> None:
    wrong = []
    for line in (Path(__file__).parent / "unread.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        overrides, told = line.split(" :: ")
        key, _, reason = told.removeprefix("not: ").partition(": ")
        one = unread(*overrides.split()).get(key)
        if (one is not None and one.reason.startswith(reason)) == told.startswith("not: "):
            wrong.append(line)
    assert wrong == []


def test_a_key_is_read_by_the_part_whose_setting_it_is() -> None:
    read = read_by(
        "ranking=unified", "decay=weibull", "compaction=lossless", "+fusion.weights={}", "fusion=reciprocal_rank"
    )
    assert read["decay.beta_core"] == "Weibull"
    assert read["fusion.k"] == "ReciprocalRank"
    assert read["summarizer.coverage"] == "Extractive"
    assert read["ranking.stages.words.window"] == "WordEvidence"
    assert read["embedder.precision"] == "MiniLM"
    assert read["cache"] == "lcm evaluate"


def test_a_part_says_where_it_is_taken_up() -> None:
    parts = {part.written: part for part in parts_read(as_written(composed(["ranking=unified"])), READ)}
    assert parts["embedder"].taken_by == [
        "memory.embedder",
        "memory.ranking.stages.vectors.embedder.embedder",
        "memory.ranking.stages.likeness.embedder.embedder",
    ]


def test_explain_shows_it_and_runs_nothing(lcm: Lcm) -> None:
    finished = lcm("evaluate", "--explain", "system=hybrid", "ranking=lancedb_pro", "ranking.mode=vector")
    assert finished.code == 0, finished.stderr
    assert "│ ranking.vector.source.pool_size " in finished.stdout
    assert "keys that nothing reads" in finished.stdout
    assert "│ fusion.floor_ratio " in finished.stdout.partition("keys that nothing reads")[2]
    told = json.loads(lcm("evaluate", "--explain", "system=hybrid", "fusion.dense_weight=0.7", "--json").stdout)
    (fusion,) = [part for part in told["parts"] if part["written"] == "fusion"]
    assert fusion["keys"]["fusion.dense_weight"] == 0.7
    assert {"key", "value", "reason"} == told["unread"][0].keys()
    assert list(finished.place.iterdir()) == []
