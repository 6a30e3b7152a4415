"""The tools of an agent: whatever is asked is answered or refused in one line, and nothing is written."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.server import Server

from lcm.context.recall.grep import Mode, Scope
from lcm.errors import LcmError, MigrationError
from lcm.memory.memory import Memory
from lcm.memory.scopes import Scopes, identified
from lcm.plugins.mcp_server import served
from lcm.plugins.mcp_tools import TOOLS, AgentTools, OpenedMemory
from lcm.store.store import Store
from tests.lcm.context.recall.dags import fold, recall, talk
from tests.lcm.store.contents import json_values
from tests.support.scope_graphs import drawn_system

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SYSTEM = drawn_system(Scopes())
EXAMPLES: dict[str, dict[str, Any]] = {
    "search": {"query": "kettle garden"},
    "grep": {"pattern": "kettle"},
    "describe": {"id": "msg#1"},
    "expand": {"ids": ["msg#1"]},
    "expand_query": {"prompt": "Which kettle?", "query": "zqada kettle"},
    "context": {"conversation": "agent:ada:main", "query": "kettle"},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "memory.db"
    with Store(path) as store:
        for who in ("ada", "bo"):
            talk(store, f"agent:{who}:main", [f"zq{who} put the kettle in the garden", f"zq{who} waits", "So it is."])
            fold(store, f"agent:{who}:main", 0, 2, f"zq{who} and a kettle.")
    return path


@contextmanager
def lent(
    path: Path, agent: str | None = None, grant: str | None = None, *, may_write: bool = False, **limits: int
) -> Iterator[AgentTools]:
    """The tools over a store, of an agent or of whoever may read all, within a grant of a conversation or without."""
    asker, configured = identified(Scopes(), agent), recall(**limits)
    with (
        Store(path, may_write=may_write) as store,
        closing(OpenedMemory(SYSTEM, path, store, may_write=may_write)) as memory,
    ):
        reader = configured.on(store, None if agent is None else asker.reads_conversation)
        if grant is not None:
            reader = configured.grant_access(reader, reader.bounds(grant).conversations or (), lambda: NOW)
        yield AgentTools(configured, reader, memory, asker, lambda: NOW)


@pytest.fixture(scope="module")
def tools(path: Path) -> Iterator[AgentTools]:
    with lent(path) as made:
        yield made


@pytest.fixture
def copy(path: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "memory.db"
    copied.write_bytes(path.read_bytes())
    return copied


def test_schemas_are_sound_and_take_what_recall_does() -> None:
    for tool in TOOLS.values():
        Draft202012Validator.check_schema(dict(tool.parameters))
    asked = TOOLS["grep"].parameters["properties"]
    assert (asked["mode"]["enum"], asked["scope"]["enum"]) == (list(get_args(Mode)), list(get_args(Scope)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_tool_answers_with_what_was_said(tools: AgentTools, name: str) -> None:
    assert set(EXAMPLES) == set(TOOLS) == set(tools.names)
    assert "kettle" in tools.call(name, EXAMPLES[name]).replace(f"`{EXAMPLES[name].get('pattern')}`", "")


known_keys = st.sampled_from(sorted({key for tool in TOOLS.values() for key in tool.parameters["properties"]}))


@given(
    name=st.sampled_from(sorted(EXAMPLES)),
    given_values=st.dictionaries(known_keys, json_values | st.sampled_from(["1", "msg#1", "(", float("nan")])),
    is_bare=st.booleans(),
)
def test_any_arguments_are_answered_or_refused_in_one_line(
    tools: AgentTools, name: str, given_values: dict[str, Any], is_bare: bool
) -> None:
    try:
        answer = tools.call(name, given_values if is_bare else EXAMPLES[name] | given_values)
    except (LcmError, ValueError) as refusal:
        assert str(refusal).strip()
        assert len(str(refusal)) < 2000
    else:
        assert answer.strip()


HOSTILE: dict[str, tuple[str, dict[str, Any], str]] = {
    "a pattern that never ends": ("grep", {"pattern": "(a+)+$", "mode": "regex"}, "never come to an end"),
    "a pattern that calls itself": ("grep", {"pattern": "(?R)*", "mode": "regex"}, "calls a group"),
    "a pattern that is huge": ("grep", {"pattern": "a{9999}{9999}", "mode": "regex"}, "steps"),
    "a query that is huge": ("search", {"query": "x " * 10**6}, "LCM_MAX_QUERY_CHARACTERS"),
    "a path": ("describe", {"id": "../../../etc/passwd"}, "there is no '../../../etc/passwd' in the store"),
    "a statement": ("describe", {"id": "x'; DROP TABLE messages; --"}, "there is no"),
    "an id that is huge": ("describe", {"id": "s" * 10**6}, "is too long"),
    "ids beyond number": ("expand", {"ids": ["msg#1"] * 10**4}, "$.ids: "),
    "a number that is huge": ("context", {"conversation": "1", "budget_tokens": 10**40}, "greater than the maximum"),
    "a key of a number beyond SQLite": ("context", {"conversation": "9" * 99}, "there is no conversation"),
    "a truth as a number": ("grep", {"pattern": "x", "limit": True}, "is not of type 'integer'"),
    "no instant": ("grep", {"pattern": "x", "since": "soon"}, "since must be an ISO 8601 date or instant"),
    "what nobody takes": ("grep", {"pattern": "x", "store": "/etc/passwd"}, "'store' was unexpected"),
    "nothing": ("grep", {}, "'pattern' is a required property"),
    "half a surrogate pair": ("grep", {"pattern": "\ud800"}, "surrogates"),
    "no such tool": ("x" * 10**6, {}, "there is no tool"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_hostile_is_refused_and_the_next_call_answered(tools: AgentTools, path: Path, case: str) -> None:
    name, asked, told = HOSTILE[case]
    before = path.read_bytes()
    with pytest.raises((LcmError, ValueError)) as refusal:
        tools.call(name, asked)
    assert told in str(refusal.value)
    assert len(str(refusal.value)) < 2000
    assert "zqada" in tools.call("grep", EXAMPLES["grep"])
    assert path.read_bytes() == before


def test_nothing_is_written_unless_that_is_allowed(copy: Path) -> None:
    before = copy.read_bytes()
    for may_write in (False, True):
        with lent(copy, may_write=may_write) as tools:
            assert "zqada" in tools.call("search", EXAMPLES["search"])
        assert (copy.read_bytes() == before) is not may_write
        assert bool(list(copy.parent.glob("*.vectors*"))) is may_write
    with Memory.open(SYSTEM, copy) as memory:
        assert len(memory.documents)


@pytest.mark.parametrize("may_write", [False, True])
def test_what_another_process_adds_is_found(copy: Path, may_write: bool) -> None:
    with lent(copy, may_write=may_write) as tools:
        assert "harbour" not in tools.call("search", {"query": "harbour"})
        with Store(copy) as other:
            talk(other, "later", ["The boat lies in the harbour."])
        assert "harbour" in tools.call("search", {"query": "harbour"})
        with Memory.open(SYSTEM, copy) as other_memory:
            talk(other_memory.store, "last", ["The harbour is closed."])
            other_memory.catch_up()
        assert "closed" in tools.call("search", {"query": "harbour"})


def test_a_store_of_an_older_schema_is_refused_where_nothing_may_be_written(copy: Path) -> None:
    with Store(copy) as store, store.writing() as connection:
        connection.execute("DELETE FROM schema_migrations WHERE version = 7")
    before = copy.read_bytes()
    with pytest.raises(MigrationError, match="schema version 6, this program reads 7; `lcm status` brings it up"):
        Store(copy, may_write=False)
    assert copy.read_bytes() == before


def test_a_long_answer_is_cut_with_a_mark(path: Path) -> None:
    with lent(path, max_result_chars=40) as tools:
        assert tools.call("search", EXAMPLES["search"]).endswith("(cut at 40 characters: ask for less to see the rest)")


def replies(opened: AbstractContextManager[AgentTools], asks: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The names of the tools, then the replies, as the SDK's client has them; a refusal begins with !."""

    async def asked(server: Server[Any]) -> list[str]:
        async with Client(server) as client:
            told = [" ".join(tool.name for tool in (await client.list_tools()).tools)]
            for name, arguments in asks:
                reply = await client.call_tool(name, arguments)
                told.append(f"{'!' if reply.is_error else ''}{reply.content[0].text}")
            return told

    with served(opened, "1", may_write=False) as server:
        return anyio.run(asked, server)


def test_an_agent_is_told_nothing_of_others(path: Path) -> None:
    asks = [*EXAMPLES.items(), ("context", {"conversation": "agent:bo:main"}), ("describe", {"id": "msg#4"})]
    listed, *told = replies(lent(path, "ada"), asks)
    assert listed == " ".join(TOOLS)
    assert "zqbo" not in str(told)
    assert all("zqada" in one for one in told[:-2])
    assert told[-2:] == [
        "!there is no conversation 'agent:bo:main' in the store",
        "!there is no 'msg#4' in the store; grep finds the ids of summaries and messages",
    ]


def test_within_a_grant_there_is_what_it_covers_until_it_is_used_up(path: Path) -> None:
    asks = [
        ("grep", {"pattern": "kettle"}),
        ("describe", {"id": "msg#4"}),
        ("search", {"query": "kettle"}),
        ("expand_query", {"prompt": "kettle?", "query": "kettle"}),
        ("grep", {"pattern": "kettle", "conversation": "agent:bo:main"}),
        *[("expand", {"ids": ["msg#1"]})] * 6,
    ]
    listed, found, *refused = replies(lent(path, grant="agent:ada:main", max_expand_tokens=60), asks)
    assert listed == "grep describe expand"
    assert "zqada" in found
    assert "zqbo" not in str([found, refused])
    assert refused[0] == "!the grant does not cover 'msg#4'"
    assert all("within this grant; choose one of: grep, describe, expand" in one for one in refused[1:3])
    assert refused[3] == "!the grant does not cover conversation 'agent:bo:main'"
    assert "zqada" in refused[4]
    assert "zqada" not in refused[-1]


def test_no_grant_is_lent_of_what_the_agent_may_not_read(path: Path) -> None:
    with pytest.raises(LcmError, match="there is no conversation 'agent:bo:main' in the store"):
        replies(lent(path, "ada", "agent:bo:main"), [])
