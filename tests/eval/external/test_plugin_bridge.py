"""The bridge to plugins as they are published, over stand-ins with their surfaces."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eval.experiment.outcome import Outcome
from eval.external.contract import FaultError
from eval.external.ranking.external import External
from eval.external.stdio import Stdio
from eval.measures.measure import Measure
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.consent import COMMANDS
from tests.conftest import ROOT
from tests.eval.external.test_stand_ins import EVERY_ONE, dataset, values
from tests.support import experiments
from tests.support.workspaces import LINES, system

BRIDGE = ROOT / "docs/examples/external/plugin_bridge.mjs"
PLUGINS = ROOT / "tests/support/external/plugins"
MEASURES: dict[str, Measure] = {"retrieval": Retrieval(names=["recall@1"]), "retention": Retention(budgets=(400,))}
EMBEDDER = {"config": {"embedding": {"baseURL": "http://127.0.0.1:9/v1"}}}
Run = Callable[..., Outcome]


def _node() -> str | None:
    if (node := shutil.which("node")) is None:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = told.strip().removeprefix("v").partition(".")[0]
    return node if major.isdecimal() and int(major) >= 20 else None


pytestmark = pytest.mark.skipif(_node() is None, reason="Node 20 or newer is not here")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(plugin: str, *ways: str, settings: Mapping[str, Any] | None = None, config: Path | None = None) -> Outcome:
        command = ["node", str(BRIDGE), *ways]
        monkeypatch.setenv(COMMANDS, shlex.join(command))
        monkeypatch.setenv("LCM_PLUGIN_DIR", str(PLUGINS / plugin))
        monkeypatch.setenv("LCM_PLUGIN_CONFIG", str(config or ""))
        transport = Stdio(command, environment=["LCM_PLUGIN_DIR", "LCM_PLUGIN_CONFIG"])
        external = External(transport, k=5, settings=settings or {})
        asked = dataset(LINES[7], LINES[3], LINES[0])
        return experiments.outcome(asked, system(ranking=external), MEASURES)

    return run


def test_tools_store_and_recall(run: Run) -> None:
    """A memory that says the ids of what it stored is believed by them."""
    outcome = run("lancedb_pro", settings=EMBEDDER)
    assert values(outcome) == EVERY_ONE
    assert outcome.incidents == {}
    assert any("external memory memory-lancedb-pro 1.1.0 answered 4 of 4" in flag for flag in outcome.flags)
    assert any(" 0 by their words" in flag for flag in outcome.flags)
    assert values(outcome, "retained@400") == {}  # it assembles nothing


def test_settings_reach_the_plugin_and_what_it_needs_besides_stands_in_a_file(run: Run, tmp_path: Path) -> None:
    none = EMBEDDER["config"] | {"retrieval": {"hardMinScore": 9}}
    assert values(run("lancedb_pro", settings={"config": none})) == dict.fromkeys(EVERY_ONE, 0.0)
    file = tmp_path / "beside.json"
    file.write_text(json.dumps(none))
    told = {"config": {"embedding": {"model": "small"}, "retrieval": {"hardMinScore": 0.1}}}
    assert values(run("lancedb_pro", settings=told, config=file)) == EVERY_ONE
    assert any("LCM_PLUGIN_CONFIG" in flag for flag in run("lancedb_pro", config=tmp_path / "absent.json").flags)


def test_a_hook_may_capture_what_was_said(run: Run) -> None:
    outcome = run("lancedb_pro", "add=agent_end", settings=EMBEDDER)
    assert values(outcome) == {"other": 1.0, "q0": 0.0, "q1": 0.0, "q2": 1.0}  # it keeps what users said
    assert outcome.incidents == {}


def test_a_context_engine_takes_in_compacts_and_assembles(run: Run) -> None:
    outcome = run("lossless_claw")
    assert values(outcome) == EVERY_ONE
    assert values(outcome, "retained@400") == EVERY_ONE
    short = run("lossless_claw", settings={"config": {}, "variables": {"LCM_FRESH_TAIL_COUNT": "2"}})
    assert values(short, "verbatim@400") == {"other": 0.0, "q0": 1.0, "q1": 0.0, "q2": 0.0}
    assert values(short) == EVERY_ONE


def test_a_memory_runtime_searches(run: Run) -> None:
    outcome = run("libravdb")
    assert values(outcome) == EVERY_ONE
    assert any("external memory libravdb-memory 1.4.4 answered 4 of 4" in flag for flag in outcome.flags)
    assert values(outcome, "retained@400")["q0"] == 1.0


@pytest.mark.parametrize(
    ("plugin", "ways", "told"),
    [
        ("lancedb_pro", ["search=memory_forget"], "search=memory_forget: the plugin registered no such way"),
        ("nowhere", [], "has no entry"),
        ("lancedb_pro", [], "no embedder at embedding.baseURL"),
    ],
)
def test_what_cannot_be_done_is_told_and_has_no_number(plugin: str, ways: list[str], told: str, run: Run) -> None:
    outcome = run(plugin, *ways)
    assert values(outcome) == {}
    assert any(told in flag for flag in outcome.flags)


def test_settings_that_a_manifest_does_not_know_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["node", str(BRIDGE)]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    monkeypatch.setenv("LCM_PLUGIN_DIR", str(PLUGINS / "lancedb_pro"))
    unknown = {"retrieval": {"hardMinScore": 0.2, "vectorWeight": 0.9}, "decay": {"betaCore": 1}}
    with closing(Stdio(command, environment=["LCM_PLUGIN_DIR"]).open()) as connection:
        told = connection.call("reset", {"workspace": "one", "settings": {"config": unknown}})
        assert told["ignores"] == ["retrieval.vectorWeight", "decay"]
        with pytest.raises(FaultError, match="one process is one workspace"):
            connection.call("reset", {"workspace": "two"})
    monkeypatch.setenv("LCM_PLUGIN_DIR", str(PLUGINS / "libravdb"))
    with closing(Stdio(command, environment=["LCM_PLUGIN_DIR"]).open()) as connection:
        assert "ignores" not in connection.call("reset", {"workspace": "one"})  # its manifest has no schema
