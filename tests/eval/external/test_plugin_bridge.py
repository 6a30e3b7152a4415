"""The bridge to plugins as they are published, over stand-ins with their surfaces and their manners."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from eval.experiment.outcome import Outcome
from eval.external.process import Stdio
from eval.external.ranking import External
from eval.external.session import Connection, FaultError
from eval.measures.measure import Measure
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.consent import COMMANDS
from lcm.plugins.settings.environment import unusable
from tests.conftest import ROOT
from tests.eval.external.test_stand_ins import EVERY_ONE, dataset, values
from tests.support import experiments
from tests.support.workspaces import LINES, system

BRIDGE = ROOT / "docs/examples/external/plugin_bridge.mjs"
PLUGINS = ROOT / "tests/support/external/plugins"
JITI = ROOT / "tests/support/external/jiti"
VARIABLES = ("LCM_PLUGIN_DIR", "LCM_PLUGIN_CONFIG", "LCM_PLUGIN_HOST")
MEASURES: dict[str, Measure] = {"retrieval": Retrieval(names=["recall@1"]), "retention": Retention(budgets=(400,))}
EMBEDDER = {"config": {"embedding": {"baseURL": "http://127.0.0.1:9/v1"}}}
Run = Callable[..., Outcome]
Opened = Callable[..., Any]


def _node() -> str | None:
    if (node := shutil.which("node")) is None:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = told.strip().removeprefix("v").partition(".")[0]
    return node if major.isdecimal() and int(major) >= 20 else None


pytestmark = pytest.mark.skipif(_node() is None, reason="Node 20 or newer is not here")


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Stdio]:
    """The way to a plugin, in a checkout that has jiti; files are written for what they hold."""

    def reached(plugin: str, *ways: str, bridge: Path = BRIDGE, has_jiti: bool = True, **files: object) -> Stdio:
        checkout = tmp_path / "checkout" / plugin
        if (PLUGINS / plugin).is_dir() and not checkout.exists():
            shutil.copytree(PLUGINS / plugin, checkout)
        if has_jiti:
            shutil.copytree(JITI, checkout / "node_modules/jiti", dirs_exist_ok=True)
        given = {"LCM_PLUGIN_DIR": str(checkout), "LCM_PLUGIN_CONFIG": "", "LCM_PLUGIN_HOST": ""}
        for name, holds in files.items():
            file = holds if isinstance(holds, Path) else tmp_path / f"{name}.json"
            if not isinstance(holds, Path):
                file.write_text(json.dumps(holds))
            given[f"LCM_PLUGIN_{name.upper()}"] = str(file)
        command = ["node", str(bridge), *ways]
        monkeypatch.setenv(COMMANDS, shlex.join(command))
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        return Stdio(command, environment=VARIABLES)

    return reached


@pytest.fixture
def run(reached: Callable[..., Stdio]) -> Run:
    def run(plugin: str, *ways: str, settings: Mapping[str, Any] | None = None, k: int = 5, **files: Any) -> Outcome:
        external = External(reached(plugin, *ways, **files), k=k, settings=settings or {})
        asked = dataset(LINES[7], LINES[3], LINES[0])
        return experiments.outcome(asked, system(ranking=external), MEASURES)

    return run


@pytest.fixture
def opened(reached: Callable[..., Stdio]) -> Opened:
    @contextmanager
    def opened(plugin: str, *ways: str, settings: object = None, **files: Any) -> Iterator[Connection]:
        with closing(reached(plugin, *ways, **files).open()) as connection:
            connection.call("reset", {"workspace": "one", "settings": settings or {}})
            yield connection

    return opened


def said(text: str, number: int = 0, **others: Any) -> dict[str, Any]:
    """A message as it is added, a day after the one before it."""
    return {
        "id": f"m{number}", "role": "user", "content": text, "author": None, "conversation_id": "talk",
        "created_at": f"2026-01-{number + 1:02}T09:00:00Z",
    } | others  # fmt: skip


def texts(connection: Connection, query: str, k: int = 20, call: str = "search") -> list[str]:
    asked = {"query": query, "k": k, "asked_at": "2026-02-03T09:00:00Z", "scopes": None, "budget_tokens": 1000}
    return [one["text"] for one in connection.call(call, asked)["results"]]  # type: ignore[arg-type]


def test_typescript_is_loaded_by_the_jiti_of_the_checkout_or_of_the_bridge(run: Run, tmp_path: Path) -> None:
    """A file `./x.js` that lies there as `x.ts`, and an entry that an absent host defines."""
    assert any("needs jiti: npm install" in flag for flag in run("libravdb", has_jiti=False).flags)
    bridge = tmp_path / "bridge/plugin_bridge.mjs"
    shutil.copytree(JITI, bridge.parent / "node_modules/jiti")
    shutil.copyfile(BRIDGE, bridge)
    assert values(run("libravdb", bridge=bridge, has_jiti=False)) == EVERY_ONE


def test_the_variables_of_the_bridge_are_none_of_a_misspelt_setting() -> None:
    assert unusable(dict.fromkeys(VARIABLES, "there")) == []


def test_what_an_absent_host_would_do_is_told(run: Run, tmp_path: Path) -> None:
    entry = tmp_path / "checkout/mine/index.ts"
    entry.parent.mkdir(parents=True)
    entry.write_text('import { openStore } from "openclaw/plugin-sdk/store";\nexport default () => openStore();\n')
    told = "openclaw is not installed, and the plugin calls its openStore: npm install openclaw in the checkout"
    assert any(told in flag for flag in run("mine").flags)


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
    told = {"config": {"embedding": {"model": "small"}, "retrieval": {"hardMinScore": 0.1}}}
    assert values(run("lancedb_pro", settings=told, config=none)) == EVERY_ONE
    absent = tmp_path / "absent.json"
    assert any(f"LCM_PLUGIN_CONFIG={absent}: no such file" in one for one in run("lancedb_pro", config=absent).flags)


def test_the_key_of_the_file_stands_against_the_variable_that_an_export_names(run: Run) -> None:
    exported = {"config": {"embedding": {"apiKey": "${EMBED_KEY}"}}}
    beside = {"embedding": {"apiKey": "none", **EMBEDDER["config"]["embedding"]}}
    assert values(run("lancedb_pro", settings=exported, config=beside)) == EVERY_ONE
    missing = run("lancedb_pro", settings=exported, config=EMBEDDER["config"])
    assert any("Environment variable EMBED_KEY is not set" in flag for flag in missing.flags)


def test_a_recall_gives_as_many_whole_texts_as_it_is_asked_for(opened: Opened) -> None:
    long = " and what was said of it by the river on a long and quiet evening in autumn"
    with opened("lancedb_pro", settings=EMBEDDER) as memory:
        memory.call("add", {"messages": [said(f"goat number {i}{long}", i) for i in range(9)]})
        assert sorted(texts(memory, "goat number")) == [f"goat number {i}{long}" for i in range(9)]
        assert texts(memory, "unheard") == []


def test_a_text_begins_with_its_author_unless_that_is_switched_off(opened: Opened) -> None:
    for words, begins in ((), "Ada: tea, please"), (["authors=false"], "tea, please"):
        with opened("lancedb_pro", *words, settings=EMBEDDER) as memory:
            memory.call("add", {"messages": [said("tea, please", author="Ada")]})
            assert texts(memory, "tea, please") == [begins]


def test_the_clock_follows_messages_and_questions_unless_that_is_switched_off(opened: Opened) -> None:
    for words, is_then in ((), True), (["clock=false"], False):
        with opened("lancedb_pro", "search=memory_debug", *words, settings=EMBEDDER) as memory:
            memory.call("add", {"messages": [said("tea")]})
            assert (texts(memory, "tea") == ["tea (said 2026-01-01, asked 2026-02-03)"]) == is_then


def test_a_way_without_feedback_answers_alike_again(opened: Opened) -> None:
    for search, is_alike in ("memory_recall", False), ("memory_debug", True):
        with opened("lancedb_pro", f"search={search}", settings=EMBEDDER) as memory:
            memory.call("add", {"messages": [said("green tea", 0), said("tea and green cake", 1)]})
            before = texts(memory, "green tea", 1)
            for _ in range(3):
                texts(memory, "cake", 1)
            assert (texts(memory, "green tea", 1) == before) == is_alike


def test_a_hook_that_returns_before_it_has_captured_is_waited_for(run: Run) -> None:
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


def test_compaction_has_a_budget_and_the_settings_of_the_host(opened: Opened) -> None:
    settings = {"variables": {"LCM_FRESH_TAIL_COUNT": "1"}}
    of_host = {"agents": {"defaults": {"contextTokens": 8000, "model": "small"}}}
    for words, files, told in (
        ([], {}, "EMERGENCY TRUNCATION for budget 128000"),
        (["target=threshold"], {"host": of_host}, "small for threshold 8000"),
    ):
        with opened("lossless_claw", *words, settings=settings, **files) as memory:
            for talk in ("one", "other"):
                memory.call("add", {"messages": [said(f"line {i}", i, conversation_id=talk) for i in range(3)]})
            assert memory.call("compact", {})["compacted"] is True
            assert texts(memory, "line", call="context")[0] == f"<summary>2 messages by {told}</summary>"
            memory.call("add", {"messages": [said("line 3", 3, conversation_id="one")]})
            assert texts(memory, "line", call="context")[0].startswith("<summary>2 messages"), (
                "each session is compacted"
            )


def test_what_a_plugin_refuses_to_compact_is_a_fault_with_its_reason(run: Run) -> None:
    outcome = run("lossless_claw", host={"agents": {"defaults": {"contextTokens": 0}}})
    assert values(outcome) == {}
    assert outcome.incidents["external: compact error"] == 2
    assert any("compact: missing token budget in compact params" in flag for flag in outcome.flags)


def test_the_lines_of_a_report_are_its_texts_best_first_and_of_all_conversations(opened: Opened) -> None:
    with opened("lossless_claw") as memory:
        memory.call("add", {"messages": [said("tea and goats", 0, conversation_id="before"), said("goats", 1)]})
        assert texts(memory, "goats tea") == ["tea and goats", "goats"]
        assert texts(memory, "# nothing") == []


def test_pictures_reach_a_context_engine_beside_the_words(opened: Opened) -> None:
    picture = {"type": "image", "data": "AAAA", "mimeType": "image/png", "text": "a goat"}
    with opened("lossless_claw") as memory:
        memory.call("add", {"messages": [said("look", parts=[picture])]})
        assert texts(memory, "look", call="context") == ["look\na goat"]


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
        ("lancedb_pro", [], "memory_store: store_failed: no embedder at embedding.baseURL"),
        ("lancedb_pro", ["adds=ingest"], "adds= is no word of this program; there are: add, search"),
    ],
)
def test_what_cannot_be_done_is_told_and_has_no_number(plugin: str, ways: list[str], told: str, run: Run) -> None:
    outcome = run(plugin, *ways)
    assert values(outcome) == {}
    assert any(told in flag for flag in outcome.flags)


def test_settings_that_a_manifest_does_not_know_are_left_out_and_named(reached: Callable[..., Stdio]) -> None:
    unknown = {"retrieval": {"hardMinScore": 0.2, "vectorWeight": 0.9}, "decay": {"betaCore": 1}}
    with closing(reached("lancedb_pro").open()) as connection:
        told = connection.call("reset", {"workspace": "one", "settings": {"config": unknown}})
        assert told["ignores"] == ["retrieval.vectorWeight", "decay"]
        with pytest.raises(FaultError, match="one process is one workspace"):
            connection.call("reset", {"workspace": "two"})
    with closing(reached("libravdb").open()) as connection:
        assert "ignores" not in connection.call("reset", {"workspace": "one"})  # its manifest has no schema
