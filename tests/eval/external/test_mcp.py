"""A memory that is an MCP server: which tools take in and find stands in the configuration."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.external.mcp import Mcp, McpConnection, SearchTool, Tool, filled
from eval.external.ranking import External
from eval.external.session import FaultError
from eval.measures.measure import Measure
from eval.measures.names import SYSTEM_ARM
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.consent import COMMANDS
from lcm.errors import LcmError
from tests.eval.external.test_stand_ins import EVERY_ONE, dataset, values
from tests.support import experiments
from tests.support.workspaces import system

SERVER = Path(__file__).parents[2] / "support/external/files_server.py"
MESSAGES = [{"id": f"m{i}", "content": f"the goat number {i} eats", "created_at": "2026-01-01"} for i in range(3)]


def files(behaviour: str = "honest", **settings: Any) -> Mcp:
    told = Mcp(
        command=[sys.executable, str(SERVER), behaviour],
        add=Tool("write_note", {"day": "{created_at}", "line": "{content}"}),
        search=SearchTool("grep", {"words": "{query}", "limit": "{k}"}, results="lines", text="line", score="hits"),
        context=SearchTool("show", {"tokens": "{budget_tokens}"}, results=None, separator="\n\n"),
    )
    return replace(told, **settings)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., McpConnection]]:
    connections: list[McpConnection] = []

    def opened(behaviour: str = "honest", **settings: Any) -> McpConnection:
        told = files(behaviour, **settings)
        monkeypatch.setenv(COMMANDS, shlex.join(told.command))
        connections.append(told.open())
        return connections[-1]

    yield opened
    for connection in connections:
        connection.close()


def test_bare_files_are_evaluated_like_any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMANDS, shlex.join(files().command))
    measures: dict[str, Measure] = {
        "retrieval": Retrieval(names=["recall@1", "recall@5"]),
        "retention": Retention(budgets=(200,)),
    }
    outcome = experiments.outcome(dataset(), system(ranking=External(files(), k=5)), measures)
    assert values(outcome) == EVERY_ONE
    assert values(outcome, "aligned") == EVERY_ONE
    assert values(outcome, "retained@200") == EVERY_ONE
    assert outcome.incidents == {}
    assert any("external memory bare-files 1 answered 4 of 4" in flag for flag in outcome.flags)
    assert outcome.run.filter(arm=SYSTEM_ARM)["score"].max() > 1


def test_what_hangs_is_timed_out_and_nothing_more_is_asked(opened: Callable[..., McpConnection]) -> None:
    connection = opened("hangs", timeout_s=1.0)
    connection.call("reset", {"workspace": "one"})
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(FaultError, match="timed out: no reply of grep within 1 s"):
            connection.call("search", {"query": "goat", "k": 2})
    with closing(connection):
        pass
    assert time.monotonic() - started < 15


def test_what_crashes_errs_or_does_not_start_is_told_with_its_last_words(opened: Callable[..., McpConnection]) -> None:
    for behaviour, told, is_end in (
        ("crashes", r"crashed: .*the disk is gone", True),
        ("errs", "error: Error executing tool grep", False),
    ):
        connection = opened(behaviour)
        connection.call("reset", {"workspace": "one"})
        with pytest.raises(FaultError, match=told) as fault:
            connection.call("search", {"query": "goat", "k": 2})
        assert fault.value.is_end == is_end
    with pytest.raises(FaultError, match=r"crashed: .*\ufffd no such server") as fault:
        opened(command=["sh", "-c", r"printf '\377 no such server\n' >&2; exit 127"]).call("reset", {"workspace": ""})
    assert fault.value.is_end
    with pytest.raises(FaultError, match="no tool 'look'; it has: write_note, grep, show"):
        opened(search=SearchTool("look")).call("reset", {"workspace": "one"})


def test_a_server_that_does_not_start_is_told(opened: Callable[..., McpConnection]) -> None:
    started = time.monotonic()
    with pytest.raises(FaultError, match="timed out: the server does not start within 1 s"):
        opened(command=["sleep", "60"], start_s=1).call("reset", {"workspace": "one"})
    assert time.monotonic() - started < 5, "one limit, and what the SDK takes to end a process"
    with pytest.raises(FaultError, match="crashed: the server does not start"):
        Mcp(url="http://127.0.0.1:9/mcp", reset=Tool("empty")).open().call("reset", {"workspace": "one"})


def test_a_command_is_run_only_where_the_user_named_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMMANDS, raising=False)
    with pytest.raises(LcmError, match="is no command that you named"):
        files().open()


def test_a_shared_server_must_be_emptied_and_be_allowed() -> None:
    with pytest.raises(LcmError, match=r"external.reset names no tool"):
        files(url="http://127.0.0.1:1/mcp").open()
    with pytest.raises(LcmError, match=r"example.org:80 is no host that you named"):
        files(url="http://example.org/mcp").open()


def test_arguments_take_values_whole_or_within_a_text() -> None:
    values = {"content": "so", "author": None, "k": 3}
    template = {"limit": "{k}", "entities": [{"name": "{author}: {content}", "kind": "note", "by": "{author}"}]}
    assert filled(template, values) == {"limit": 3, "entities": [{"name": ": so", "kind": "note", "by": None}]}
    with pytest.raises(ValueError, match=r"arguments name {contents}, which no call has"):
        Tool("add", {"text": "{contents}"})


def test_results_are_found_where_they_stand() -> None:
    nested = SearchTool("s", results="data.items", text="said", score=None, source_ids="of")
    told = {"data": {"items": [{"said": ["one", "two"], "of": "m1"}]}}
    assert nested.found([], told) == [{"text": "one\ntwo", "score": None, "source_ids": ["m1"]}]
    assert SearchTool("s", results="").found(['["a", "b"]'], None)[1]["text"] == "b"
    with pytest.raises(FaultError, match="s gives no list at 'results'"):
        SearchTool("s").found(["no JSON"], None)
