"""What an external memory is asked, and what comes of its answers, as `tests/test_knobs.py` compares it."""

import os
import shlex
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from omegaconf import DictConfig

from eval.external.http import Http, HttpConnection
from eval.external.mcp import Mcp, McpConnection
from eval.external.process import Stdio
from eval.external.ranking import External
from eval.external.session import FaultError, NoExternal
from lcm.consent import COMMANDS, TRUST
from lcm.errors import LcmError
from pipelines.config import building
from tests.support.small_talk import dataset
from tests.support.workspaces import system

STAND_IN = Path(__file__).parent / "external/stand_in.py"
MESSAGES = [{"id": f"m{i}", "content": f"the goat number {i}", "created_at": f"2026-01-0{i + 1}"} for i in range(2)]


def stand_in(behaviour: str) -> list[str]:
    return [sys.executable, str(STAND_IN), behaviour]


def reached(config: DictConfig) -> object:
    """What a memory answers over a transport; of HTTP and MCP what a server would be asked, and what comes of that."""
    transport = building.build(config, "external")
    if isinstance(transport, NoExternal):
        return "nothing"
    allowed = shlex.join(transport.command) if isinstance(transport, Stdio) else ""
    with mock.patch.dict(os.environ, {COMMANDS: allowed, TRUST: "tests", "LCM_MARK": "marked"}):
        try:
            if isinstance(transport, Mcp):
                return _of_server(transport)
            with closing(transport.open()) as connection:
                return _of_url(connection) if isinstance(transport, Http) else _answers(connection)
        except (LcmError, FaultError) as error:
            return str(error)


def played(config: DictConfig) -> object:
    """What the ranking of an external memory answers over a small talk."""
    ranking: External = building.build(config, "ranking")
    with mock.patch.dict(os.environ, {COMMANDS: shlex.join(config.external.command)}):
        given = dataset()
        logs = []
        with mock.patch("eval.external.ranking.LogReading", side_effect=_noting(logs)):
            found = ranking.played(
                system(), given, given.workspaces[0], is_per_turn=False, budgets=(), cache=None
            ).ranking
    return found.answers.rows(), found.asked.drop("round_trip_ms").rows(), logs


def _noting(logs: list[Any]) -> Any:
    from eval.external.reading import LogReading

    def noted(log: Any, *others: Any) -> Any:
        logs.append(log["call"].to_list())
        return LogReading(log, *others)

    return noted


def _answers(connection: Any) -> object:
    connection.call("reset", {"workspace": "one"})
    connection.call("add", {"messages": MESSAGES})
    asked = {"query": "goat 1", "k": 2, "asked_at": "2026-01-03", "scopes": None}
    return connection.call("search", asked)["results"]


def _of_url(connection: HttpConnection) -> object:
    with mock.patch.object(connection, "_session") as session:
        session.post.return_value.__enter__.return_value = SimpleNamespace(
            status_code=200, raw=SimpleNamespace(read1=mock.Mock(side_effect=[b"{}", b""]))
        )
        connection.call("search", {"query": "goat", "k": 2})
    (address,), settings = session.post.call_args
    return address, settings["json"], settings["headers"]


def _of_server(transport: Mcp) -> object:
    asked = []

    async def call_tool(name: str, arguments: Any) -> Any:
        asked.append((name, arguments))
        blocks = [SimpleNamespace(type="text", text="one;two"), SimpleNamespace(type="text", text="three")]
        one = {"text": "a text", "other": "another", "score": 2.0, "rank": 1, "of": "m1"}
        return SimpleNamespace(content=blocks, structured_content={"results": [one], "others": []}, is_error=False)

    with closing(McpConnection(transport)) as connection:
        connection._client = SimpleNamespace(call_tool=call_tool)
        connection.call("add", {"messages": MESSAGES})
        found = [connection.call("search", {"query": "goat", "k": 2})]
        if transport.reset is not None:
            connection._called(transport.reset, {"workspace": "one"})
        if transport.compact is not None:
            connection.call("compact", {})
        if transport.context is not None:
            found.append(connection.call("context", {"budget_tokens": 100}))
    return asked, found


EXTERNALS: dict[str, object] = {
    "external/http:api_key_env": "LCM_MARK",
    "external/http:url": "http://127.0.0.1:8/there",
    "external/mcp:add.arguments.text": "{author}: {content}",
    "external/mcp:add.name": "note",
    "external/mcp:command": ["another"],
    "external/mcp:compact": {"_target_": "eval.external.mcp.Tool", "name": "tidy"},
    "external/mcp:context": {"_target_": "eval.external.mcp.SearchTool", "name": "show"},
    "external/mcp:environment": ["LCM_MARK"],
    "external/mcp:reset": {"_target_": "eval.external.mcp.Tool", "name": "clear"},
    "external/mcp:search.arguments.limit": 5,
    "external/mcp:search.arguments.query": "about {query}",
    "external/mcp:search.name": "find",
    "external/mcp:search.results": "others",
    "external/mcp:search.score": "rank",
    "external/mcp:search.separator": ";",
    "external/mcp:search.source_ids": "of",
    "external/mcp:search.text": "other",
    "external/mcp:url": "http://127.0.0.1:8/mcp",
    "external/object:environment": ["LCM_MARK"],
    "external/object:settings": {"mark": "said: "},
    "external/object:target": "tests.support.external.memories.Surroundings",
    "external/stdio:command": stand_in("edits"),
    "external/stdio:environment": ["LCM_MARK"],
    "ranking/external:revision": "another",
    "ranking/external:settings": {"most": 1},
}
"""What the knobs of external memories are turned to."""
