"""What an agent may not read leaves no trace in what it is told: over random scope graphs and every ranking path."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.memory.memory import Memory
from lcm.memory.scopes import Scopes
from lcm.memory.system import System
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.ranking.routed import RoutedRanking
from pipelines.config import building
from tests.support.composing import composed
from tests.support.workspaces import LINES, minute

AGENTS = ("ada", "bo", "cy", "system")
SHARED = ("global", "project:x", "custom:team")
TEXTS = ("kitchen", "goats on Thursday proj:x", "proj:X kettle", "nothing of that kind", "Ada prefers tea")
ASKED_AT = minute(24 * 60)

access = st.dictionaries(
    st.sampled_from(AGENTS[:-1]),
    st.lists(st.sampled_from([*SHARED, *(f"agent:{agent}" for agent in AGENTS[:-1])]), unique=True, max_size=4),
)
written = st.lists(
    st.tuples(st.sampled_from([*AGENTS[:-1], None]), st.sets(st.integers(0, len(LINES) - 1), min_size=1)),
    min_size=1,
    max_size=4,
)


@cache
def memory_system(*overrides: str) -> System:
    config = composed(["system=lancedb_pro", "embedder=hashing", "vector_index=exact", *overrides])
    system: System = building.build(config, "memory")
    return system


def scopes_of(agent_access: dict[str, list[str]]) -> Scopes:
    definitions = {"global": None, "project:x": None, "custom:team": None}
    return Scopes(definitions=definitions, agent_access=agent_access)


def said(number: int, agent: str | None, lines: set[int]) -> Transcript:
    """A conversation of that agent, some lines with a tag; without an agent it belongs to all."""
    name = f"agent:{agent}:talk:{number}" if agent else f"talk {number}"
    return Transcript(
        name,
        tuple(
            Message(f"{name}:{line}", "user", f"{LINES[line]} proj:x" if line % 2 else LINES[line], name, minute(line))
            for line in sorted(lines)
        ),
    )


def questions(scopes: tuple[str, ...] | None) -> list[Query]:
    return [Query(f"q{i}", text, ASKED_AT, scopes=scopes) for i, text in enumerate(TEXTS)]


def scope_of(memory: Memory) -> dict[str, str]:
    return dict(memory.store.documents().select("document_id", "scope").iter_rows())


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mode=st.sampled_from(["hybrid", "vector"]), agent_access=access, conversations=written)
def test_answers_and_traces_are_those_of_a_memory_without_the_scopes_that_may_not_be_read(
    mode: str, agent_access: dict[str, list[str]], conversations: list[tuple[str | None, set[int]]]
) -> None:
    scopes = scopes_of(agent_access)
    base = memory_system()
    assert isinstance(base.ranking, RoutedRanking)
    system = replace(base, scopes=scopes, ranking=replace(base.ranking, mode=mode))
    talks = [said(number, agent, lines) for number, (agent, lines) in enumerate(conversations)]
    with Memory.open(system) as writing:
        for talk in talks:
            writing.ingest(talk)
        store = writing.store
        memory = Memory(system, store)  # opened again: documents stand in the order of time, as they will below
        everything = scope_of(memory)
        for agent in AGENTS:
            readable = scopes.readable(agent)
            ranked, trace = memory.rank(questions(readable)), memory.trace(questions(readable))
            told = set(ranked["document_id"]) | set(trace["document_id"])
            if readable is None:
                assert agent == "system"
                continue
            assert {everything[document_id] for document_id in told} <= set(readable)
            store._connection.execute("BEGIN")
            store._connection.execute(
                f"DELETE FROM documents WHERE scope NOT IN ({', '.join('?' * len(readable))})", readable
            )
            alone = Memory(system, store)
            assert set(alone.documents["scope"]) <= set(readable)
            # Where nobody reads by scopes, the global one is no more shared than any other.
            assert alone.rank(questions(None)).drop("scope_class").equals(ranked.drop("scope_class"))
            assert alone.trace(questions(None)).equals(trace)
            store._connection.execute("ROLLBACK")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(agent_access=access, conversations=written)
def test_a_writer_is_compared_with_nothing_that_it_may_not_read(
    agent_access: dict[str, list[str]], conversations: list[tuple[str | None, set[int]]]
) -> None:
    scopes = scopes_of(agent_access)
    system = replace(memory_system("admission=balanced", "deduplication=rule"), scopes=scopes)
    with Memory.open(system) as memory:
        for number, (agent, lines) in enumerate(conversations):
            memory.ingest(said(number, agent, lines))
        scope = scope_of(memory)
        decisions = memory.store.decisions()
        assert len(decisions) == sum(len(lines) for _, lines in conversations)
        for row in decisions.iter_rows(named=True):
            agent = _agent(row["conversation_id"])
            readable = ("global",) if agent is None else scopes.readable(agent) or ()
            compared = {row["matched_id"], *_named(json.loads(row["audit"]))} - {None}
            assert {scope[document_id] for document_id in compared} <= set(readable)
            if row["action"] in ("merge", "supersede"):
                assert scope[row["document_id"]] == scope[row["matched_id"]] == row["scope"]
        for agent in AGENTS[:-1]:
            seen, allowed = memory.store.decisions(scopes.readable(agent)), set(scopes.readable(agent) or ())
            assert set(seen["scope"]) <= allowed
            told = _named([json.loads(audit) for audit in seen["audit"]])
            told |= set(seen["document_id"].drop_nulls()) | set(seen["matched_id"].drop_nulls())
            assert {scope[document_id] for document_id in told} <= allowed


def _agent(conversation_id: str) -> str | None:
    return conversation_id.split(":")[1] if conversation_id.startswith("agent:") else None


def _named(node: Any) -> set[str]:
    """Every document id that an audit names."""
    if isinstance(node, dict):
        return {found for child in node.values() for found in _named(child)}
    if isinstance(node, list):
        return {found for child in node for found in _named(child)}
    return {node} if isinstance(node, str) and node.startswith("doc_") else set()
