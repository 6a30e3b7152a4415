"""`lcm mcp`: a client of the SDK starts it and asks over standard input, as an agent's program does."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from lcm.store.store import Store
from pipelines.cli import BAD_INPUT
from tests.conftest import ROOT
from tests.lcm.context.recall.dags import fold, talk
from tests.pipelines.conftest import Lcm

Asks = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Store(path) as made:
        talk(made, "talk", ["The kettle in the garden is blue.", "来週の火曜日に東京で会議があります", "So it is."])
        fold(made, "talk", 0, 2, "A kettle, and a meeting in Tokyo.")
    return path


def command(store: Path, *more: str) -> list[str]:
    return ["-m", "pipelines.cli", "mcp", f"store={store}", "embedder=hashing", *more]


def environment(store: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "LCM_CACHE_DIR": str(store.parent / "cache")}


async def asked(store: Path, asks: Asks, into: dict[str, str], *more: str) -> None:
    """Start a server and ask it; the replies stand in `into`, refusals begin with !."""
    server = StdioServerParameters(
        command=sys.executable, args=command(store, *more), env=environment(store), cwd=store.parent
    )
    async with Client(stdio_client(server)) as client:
        into["tools"] = " ".join(tool.name for tool in (await client.list_tools()).tools)
        for name, given in asks:
            reply = await client.call_tool(name, given)
            into[name] = f"{'!' if reply.is_error else ''}{reply.content[0].text}"


@pytest.mark.slow
def test_an_agents_program_recalls_by_every_tool_and_writes_nothing(store: Path) -> None:
    before, replies = store.read_bytes(), dict[str, str]()
    asks: Asks = [
        ("search", {"query": "Which colour is the kettle?"}),
        ("grep", {"pattern": "会議"}),
        ("describe", {"id": "msg#1"}),
        ("expand", {"ids": ["msg#1", "talk:3"]}),
        ("expand_query", {"prompt": "Which colour is the kettle?", "query": "kettle"}),
        ("context", {"conversation": "talk"}),
        ("write", {"text": "x"}),
    ]
    anyio.run(asked, store, asks, replies)
    assert replies["tools"] == "search grep describe expand expand_query context"
    for name in ("search", "describe", "expand", "expand_query"):
        assert "The kettle in the garden is blue." in replies[name], name
    assert "msg#2" in replies["grep"]
    assert "So it is." in replies["context"]
    assert replies["write"].startswith("!there is no tool 'write'; choose one of: search")
    assert store.read_bytes() == before
    assert {one.name for one in store.parent.iterdir()} == {"memory.db", "cache"}


@pytest.mark.slow
def test_two_programs_at_once_keep_the_same_documents(store: Path) -> None:
    with Store(store) as made:
        for number in range(20):
            talk(made, f"more:{number}", [f"Ship number {number} lies in the harbour.", "It sails tomorrow."])
    both: list[dict[str, str]] = [{}, {}]

    async def together() -> None:
        async with anyio.create_task_group() as group:
            for replies in both:
                asks: Asks = [("search", {"query": "Ship number 7"}), ("grep", {"pattern": "harbour", "limit": 30})]
                group.start_soon(asked, store, asks, replies, "write=true")

    anyio.run(together)
    assert both[0] == both[1]
    assert "Ship number 7 lies" in both[0]["search"]
    assert "**Total matches:** 20" in both[0]["grep"]
    with Store(store) as made:
        said = made.documents()["source_message_ids"].to_list()
    assert len(said) == len({tuple(one) for one in said}) > 20


def request(number: int, method: str, params: str) -> str:
    return f'{{"jsonrpc": "2.0", "id": {number}, "method": "{method}", "params": {params}}}'


@pytest.mark.slow
def test_what_is_no_request_is_survived_and_sigterm_ends_it_in_one_line(store: Path) -> None:
    """Lines that the SDK's client cannot even send."""
    hello: Mapping[str, Any] = {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }  # fmt: skip
    lines = [
        request(1, "initialize", json.dumps(hello)),
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        "no JSON",
        request(2, "tools/call", '{"name": "grep", "arguments": {"pattern": "\\ud800"}}'),
        request(3, "tools/call", '{"name": "grep", "arguments": [1]}'),
        request(4, "tools/call", '{"a":' * 5000 + "1" + "}" * 5000),
        request(5, "tools/call", '{"name": "grep", "arguments": {"limit": NaN}}'),
        request(6, "tools/call", '{"name": "describe", "arguments": {"id": "msg#1"}}'),
    ]
    with subprocess.Popen(
        [sys.executable, *command(store)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env={**environment(store), "PATH": ""},
    ) as server:  # fmt: skip
        assert server.stdin and server.stdout and server.stderr
        server.stdin.write("".join(f"{line}\n" for line in lines))
        server.stdin.flush()
        replies = {}
        while 6 not in replies:
            reply = json.loads(server.stdout.readline())
            replies[reply.get("id")] = reply
        assert "The kettle in the garden is blue." in replies[6]["result"]["content"][0]["text"]
        assert replies[5]["result"]["isError"]
        assert "error" in replies[3]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 143
        assert server.stderr.read().splitlines()[-1] == "lcm: terminated"


def test_without_the_sdk_one_line_says_what_to_install(lcm: Lcm, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lcm.plugins.mcp_server", raising=False)
    for name in ("mcp", "mcp.server", "mcp_types"):
        monkeypatch.setitem(sys.modules, name, None)
    done = lcm("mcp", f"store={store}", "embedder=hashing")
    assert done.code == BAD_INPUT
    assert done.stderr == "lcm: lcm mcp needs the package mcp, which is not installed: pip install '.[mcp]'\n"
