"""A memory's own settings: told with every reset, over every transport, or refused."""

import sys
from contextlib import closing
from typing import Any

import pytest

from eval.external.contract import FaultError, read_told, reset_arguments
from eval.external.mcp import Mcp
from eval.external.mcp_tool import Tool
from eval.external.python_object import PythonObject
from eval.external.ranking.external import External
from lcm.consent import TRUST
from lcm.errors import LcmError
from tests.eval.external.test_stand_ins import dataset, stand_in
from tests.support import experiments
from tests.support.workspaces import system

MEMORIES = "tests.support.external.memories"


def flags(external: External) -> tuple[str, ...]:
    return tuple(experiments.outcome(dataset(), system(ranking=external)).flags)


def test_a_process_is_set_for_every_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    told = External(stand_in("honest", monkeypatch), settings={"most": 1})
    assert any("returned 4 texts" in flag for flag in flags(told))
    assert not any("returned 4 texts" in flag for flag in flags(External(stand_in("honest", monkeypatch))))


def test_an_object_is_set_or_says_that_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST, "tests")

    def run(name: str, settings: dict[str, Any]) -> tuple[str, ...]:
        external = External(PythonObject(f"{MEMORIES}.{name}"), k=2, settings=settings)
        return flags(external)

    assert any("answered 4 of 4" in flag for flag in run("Configured", {"mark": "said: "}))
    assert any("answered none of 4" in flag and "settings" in flag for flag in run("Newest", {"mark": "said: "}))
    assert any("answered 4 of 4" in flag for flag in run("Newest", {}))


def test_a_server_that_would_not_hear_of_them_is_refused() -> None:
    deaf = Mcp(command=[sys.executable], reset=Tool("clear", {"what": "{workspace}"}))
    for server in (deaf, Mcp(command=[sys.executable])):
        connection = _unopened(server)
        with closing(connection), pytest.raises(LcmError, match=r"external.reset has no argument {settings}"):
            connection.call("reset", {"workspace": "one", "settings": {"a": 1}})


def _unopened(server: Mcp) -> Any:
    from eval.external.mcp import McpConnection

    return McpConnection(server)


def test_what_a_memory_ignores_is_a_list_of_paths() -> None:
    assert read_told({}).ignores is None
    assert read_told({"ignores": []}).ignores == ()
    assert read_told({"ignores": ["retrieval.minScore"]}).ignores == ("retrieval.minScore",)
    for wrong in ("minScore", [1], {"a": 1}):
        with pytest.raises(FaultError, match="ignores must be a list of paths of settings"):
            read_told({"ignores": wrong})
    assert reset_arguments("one", {}) == {"workspace": "one"}
    assert reset_arguments("one", {"a": 1}) == {"workspace": "one", "settings": {"a": 1}}
