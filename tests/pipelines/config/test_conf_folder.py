"""The tree of all YAMLs says what Hydra composes of them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from lcm.errors import LcmError
from pipelines.config.check import checked
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name, groups, shipped


def by_hydra(overrides: list[str], pipeline: str = EVALUATE) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration that Hydra composes, and its choices."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(version_base="1.3", config_dir=str(conf_dir())):
        whole = compose(config_name(pipeline), overrides, return_hydra_config=True)
    plain: Any = OmegaConf.to_container(whole)
    choices = plain.pop("hydra")["runtime"]["choices"]
    return plain, {key: choice for key, choice in choices.items() if not key.startswith("hydra/")}


def by_tree(overrides: list[str], pipeline: str = EVALUATE) -> tuple[dict[str, Any], dict[str, Any]]:
    found = checked(overrides, pipeline).chosen
    found.config.pop("hydra", None)
    return found.config, found.choices


def assert_same(overrides: list[str], pipeline: str = EVALUATE) -> None:
    (ours, our_choices), (theirs, their_choices) = by_tree(overrides, pipeline), by_hydra(overrides, pipeline)
    assert ours == theirs
    assert list(ours) == list(theirs)
    assert our_choices == their_choices


@pytest.mark.parametrize("pipeline", ["evaluate", "tune", "compact", "mcp", "questions make", "regress"])
def test_each_pipeline_is_known(pipeline: str) -> None:
    assert_same([], pipeline)


@pytest.mark.parametrize(
    "overrides",
    [
        ["system=lancedb_pro_beta11", "decay=weibull_lifted", "measures=[retention,survival]"],
        ["experiment=long_sessions_libravdb", "system=neighbours", "arms=recorded_run"],
        ["summarizer=routed", "summarizer@summarizer.abstractive=truncate", "+dataset@distractors.beam=beam"],
        ["~tracking", "dataset@distractors.transcripts=locomo", "experiment=locomo"],
    ],
)
def test_choices_are_known(overrides: list[str]) -> None:
    assert_same(overrides)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.data())
def test_a_mix_of_choices_and_settings_is_known(data: st.DataObject) -> None:
    known = [group for group in groups() if group not in ("sweep", "space", "recall", "answerer", "kinds")]
    chosen = data.draw(st.lists(st.sampled_from(known), unique=True, max_size=5))
    choices = [f"{group}={data.draw(st.sampled_from(groups()[group]))}" for group in chosen]
    changes = ["+means.more=[1,b]", "++scopes.agent_access={a:[b]}", "cache=1e3", "~stages"]
    if "measures" not in chosen:  # some choices have no latency
        changes.append("measures.latency=null")
    assert_same([*choices, *data.draw(st.lists(st.sampled_from(changes), unique=True))])


KEYS = st.sampled_from(
    (
        *("means", "means.seed", "means.x", "fusion", "fusion.k", "fusion.weights", "ranking.stages.limit", "x.y"),
        *("memory.ranking", "memory.ranking.x", "ranking.stages.fusion.k", "measures.latency", "judgements.x", "sweep"),
        *("dataset@distractors.transcripts", "dataset.directory.x", "system", "cache", "measures", "decay@other"),
        *("source.branches", "arms.bm25"),
    )
)
VALUES = st.sampled_from(
    ("3", "null", "", "[a,b]", "{a: 1}", "{seed: 2}", "weighted_sum", "none", "hybrid", "'a b'", "latency")
)
SIGNS = st.sampled_from(["", "", "", "+", "++", "~"])


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(st.builds("{}{}={}".format, SIGNS, KEYS, VALUES), min_size=1, max_size=2))
def test_what_hydra_takes_is_found_right_and_what_it_refuses_is_told(overrides: list[str]) -> None:
    try:
        by_hydra(overrides)
    except Exception as error:
        if "Could not delete from config. The value of" in str(error.__cause__ or error):
            return  # which Hydra tells
        with pytest.raises(LcmError):
            checked(overrides)
    else:
        assert_same(overrides)


NAMES = st.sampled_from(["a", "b", "c"])
PACKAGES = st.sampled_from(["", "@_global_", "@_here_", "@other", "@_global_.far.away", "@far.away"])
ENTRIES = st.one_of(
    st.just("_self_"),
    st.builds("{}{}".format, NAMES, PACKAGES),
    st.builds("/leaf/{}{}".format, NAMES, PACKAGES),
    st.builds(lambda package, name: {f"/leaf{package}": name}, PACKAGES, NAMES),
    st.builds(lambda package, name: {f"optional /leaf{package}": name}, PACKAGES, st.sampled_from(["a", "none"])),
    st.builds(lambda names: {"/leaf@several": names}, st.lists(NAMES, max_size=2)),
    st.builds(lambda name: {"override /decay": name}, st.sampled_from(["none", "weibull", "${leaf}"])),
)
"""Of the defaults list of a choice."""
CONTENTS = st.dictionaries(
    st.sampled_from(["x", "y"]),
    st.sampled_from([1, "1e3", "${decay}", None, {"z": 1}, {"z": {"w": "???"}}, [1], "2026-01-01", "yes"]),
    max_size=2,
)


HEADERS = st.sampled_from(["", "# @package _global_\n", "# @package far\n\n# @more it\n", "# said\n# @package far\n"])


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.tuples(HEADERS, CONTENTS), min_size=6, max_size=6), st.lists(ENTRIES, max_size=3))
def test_defaults_lists_of_searched_folders_are_known(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, dict[str, Any]]], entries: list[Any]
) -> None:
    place = tmp_path_factory.mktemp("searched")
    for i, (header, content) in enumerate(files):
        path = place / ("leaf" if i % 2 else "whole") / f"{'abc'[i // 2]}.yaml"
        path.parent.mkdir(exist_ok=True)
        defaults = {"defaults": [one for one in entries if str(one)[0] != "a"]} if i == 0 else {}
        path.write_text(header + yaml.safe_dump(defaults | content, sort_keys=False))
    overrides = [f"hydra.searchpath=[file://{place}]", "+whole=a", "++x.more=1"]
    try:
        by_hydra(overrides)
    except Exception:
        return  # what Hydra refuses of a YAML it tells itself
    assert_same(overrides)


def test_an_interpolated_choice_is_found(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\ndefaults:\n  - /decay@other: ${experiment}\n"
    (tmp_path / "experiment" / "weibull_fast.yaml").write_text(text)
    assert_same([f"hydra.searchpath=[file://{tmp_path}]", "experiment=weibull_fast", "decay=weibull_fast"])


def test_a_yaml_that_changed_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "decay").mkdir()
    for half in (3, 5):
        text = f"defaults: [exponential]\nhalf_life_days: {half}\n"
        (tmp_path / "decay" / "mine.yaml").write_text(text)
        config, _ = by_tree(["decay=mine", f"hydra.searchpath=[file://{tmp_path}]"])
        assert config["decay"]["half_life_days"] == half


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1\n", "mine.yaml: while parsing a flow sequence"),
        ("defaults: {a: b}\n", "mine.yaml: defaults are a list of GROUP: CHOICE and of names"),
        ("defaults: [{fusion: a, decay: b}]\n", "mine.yaml: defaults are a list"),
        ("defaults: [{/fusion: nothing}]\n", "mine.yaml: fusion=nothing: no such choice; choose one of: hybrid_score,"),
    ],
)
def test_a_yaml_that_cannot_be_read_is_told_by_its_name(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "decay").mkdir()
    (tmp_path / "decay" / "mine.yaml").write_text(text)
    with pytest.raises(LcmError, match=told.replace("[", r"\[")):
        checked(["decay=mine", f"hydra.searchpath=[file://{tmp_path}]"])


def test_what_a_choice_holds_is_what_it_composes_to() -> None:
    assert shipped().node("decay", "weibull_lifted") == by_hydra(["decay=weibull_lifted"])[0]["decay"]
