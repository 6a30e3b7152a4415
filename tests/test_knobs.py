"""A knob that changes no number is a defect, unless its reason stands in `tests/support/knobs/reasons.py`.

Every leaf of every YAML is changed, one at a time, and what its component gives must change. Identities (an
embedder's name, a dataset's digest) hold all settings by construction and are no proof, so they are left out.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from eval.dataset.sample import bundled_directory
from pipelines.config import conf_folder
from tests.lcm.retrieval.reranker.test_cross_encoder import build_cross_encoder
from tests.support.component_results import Given, result
from tests.support.knobs.changed import CHANGED, profiles
from tests.support.knobs.frames import FRAMES
from tests.support.knobs.knob import KNOBS, PLACES, Knob
from tests.support.knobs.reasons import REASONS
from tests.support.knobs.small_datasets import SMALL_DATASETS
from tests.support.models import describe

GROUPS = frozenset(conf_folder.groups())
pytestmark = pytest.mark.full


@pytest.mark.parametrize("yaml", PLACES)
def test_a_knob_changes_what_its_component_gives(yaml: str, turn: Callable[[Knob], str]) -> None:
    wrong = [turn(knob) for knob in KNOBS if knob.place == yaml]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.fixture
def turn(place: dict[str, Any], yaml: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Knob], str]:
    """Turns a knob, each in folders of its own; gives what is wrong with it, or nothing."""

    def turned(knob: Knob) -> str:
        here = tmp_path / knob.path
        here.mkdir()
        if yaml not in KEEPING_MODELS:
            monkeypatch.setenv("LCM_CACHE_DIR", str(here / "cache"))
        frame = knob.frame() | place
        another = frame | {knob.key: knob.another(tmp_path)}
        changes = _result(knob.group, frame).differs(_result(knob.group, another))
        if str(knob) in REASONS:
            return f"{knob} changes numbers: take it out of REASONS" if changes else ""
        return "" if changes else f"{knob} changes nothing: it is dead, or REASONS must say why"

    return turned


KEEPING_MODELS = ("embedder/minilm", "summarizer/t5")
"""Whose exports lie in one cache for all tests."""


@pytest.mark.parametrize("table", [REASONS, CHANGED, FRAMES], ids=["reasons", "changed", "frames"])
def test_a_table_names_only_what_exists(table: Mapping[str, object]) -> None:
    assert set(table) <= {str(knob) for knob in KNOBS} | set(PLACES)


def recorded_run(folder: Path) -> str:
    """Of another system."""
    (folder / "first").write_text("q0 Q0 m1 1 2.5 theirs\n")
    return str(folder / "first")


@pytest.fixture
def place(request: pytest.FixtureRequest, yaml: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Overrides that name the files which a choice needs."""
    if yaml == "embedder/minilm":
        request.getfixturevalue("minilm_cache")
        return {}
    if yaml == "executor/ray":
        request.getfixturevalue("ray_of_two")
        return {}
    if yaml == "summarizer/t5":
        tiny = request.getfixturevalue("tiny_t5")
        (tmp_path / "untrained").symlink_to(tiny.untrained)
        return {"summarizer.model": str(tiny.trained)}
    group, _, choice = yaml.partition("/")
    if group == "dataset" and choice in SMALL_DATASETS:
        (tmp_path / choice).mkdir()
        return {"dataset.directory": SMALL_DATASETS[choice](tmp_path / choice, monkeypatch)}
    match yaml:
        case "arms/recorded_run":
            return {"arms.recorded.file": recorded_run(tmp_path)}
        case "dataset/own":
            (tmp_path / "said").mkdir()
            for name, asked in (("rope", "What to buy?"), ("tar", "What else?")):
                (tmp_path / "said" / f"{name}.jsonl").write_text(f'{{"role": "user", "content": "Buy {name}."}}\n')
                (tmp_path / f"{name}.csv").write_text(f"question,evidence\n{asked},Buy rope\n")
            return {"dataset.paths": [str(tmp_path / "said")], "dataset.questions": str(tmp_path / "rope.csv")}
        case "dataset/transcripts":
            return {"dataset.paths": [str(bundled_directory() / "transcripts" / "zhongwen.json")]}
        case "embedder/onnx" | "embedder/nomic" | "embedder/hub":
            build = request.getfixturevalue("build_model")
            directory, another = build("tiny"), build("another", seed=1)
            for model in (directory, another):
                if yaml == "embedder/nomic":
                    (model / "onnx").mkdir()
                    shutil.copy(model / "model.onnx", model / "onnx" / "model.onnx")  # as on the hub
                describe(model, pooling="mean_tokens", max_seq_length=64)
            shutil.copy(another / "model.onnx", directory / "another.onnx")
            return {"embedder.model" if yaml == "embedder/hub" else "embedder.directory": str(directory)}
        case "embedder/openai_compatible":
            own = {"base_url": "${oc.env:LCM_TEST_SERVER}/v1", "dimensions": 8, "max_tokens": 512}
            return {f"embedder.{key}": value for key, value in own.items()}
        case "language_model/openai_compatible":
            keys = profiles(tmp_path / "profiles.json", "sk-refused-1", new="sk-refused-2")
            return {
                "language_model.model.base_url": "${oc.env:LCM_TEST_SERVER}/v1",
                "language_model.model.profiles": keys,
            }
        case "reranker/cross_encoder":
            directory, another = tmp_path / "tiny", tmp_path / "another"
            for model in (directory, another):
                build_cross_encoder(model)
            _sharpen(another / "model.onnx")
            shutil.copy(another / "model.onnx", directory / "another.onnx")
            return {"reranker.directory": str(directory)}
        case "reranker/remote":
            return {"reranker.endpoint": "${oc.env:LCM_TEST_SERVER}/v1"}
        case "tracking/mlflow":
            return {"tracking.uri": f"sqlite:///{request.getfixturevalue('tracked')}/mlflow.db"}
    return {}


def _sharpen(model: Path) -> None:
    """Divide its logits by 5 in place of 10."""
    graph = onnx.load(model)
    (ten,) = (constant for constant in graph.graph.initializer if constant.name == "ten")
    ten.CopyFrom(numpy_helper.from_array(np.array(5, np.float32), "ten"))
    onnx.save(graph, model)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tracked")


def _result(group: str, overrides: Mapping[str, Any]) -> Given:
    choices = {key: value for key, value in overrides.items() if key in GROUPS}
    settings = {key: json.dumps(value) for key, value in overrides.items() if key not in GROUPS}
    return result(group, tuple(choices.items()), tuple(settings.items()))
