"""Whoever asks, by whatever door, is told nothing of others: over random workspaces of several agents."""

import os
import re
from collections import Counter
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Recall
from lcm.memory.memory import Memory
from lcm.plugins.mcp_tools import TOOLS as AGENT_TOOLS
from tests.support.doors import Asker, Attempt, attempts, told
from tests.support.scope_graphs import World, graphs, hosts, world

ANSWERS = {
    "Memory.assemble", "Memory.batches", "Memory.context", "Memory.history", "Memory.rank", "Memory.rank_batches",
    "Memory.recall",
    "Memory.recalled", "Memory.search", "Memory.trace", "Reader.describe", "Reader.expand", "Reader.grep",
    "Reader.items", "Reader.messages", "Recall.expand_query", *(f"mcp {name}" for name in AGENT_TOOLS),
}  # fmt: skip
COMMANDS = {"describe", "expand", "expand_query", "grep"}
NO_ANSWERS = {
    "Memory.before_reset": "prunes", "Memory.bootstrap": "writes", "Memory.session_end": "archives",
    "Memory.catch_up": "makes", "Memory.close": "ends", "Memory.compact": "makes", "Memory.copy_to": "writes",
    "Memory.dream": "writes", "Memory.identity": "says who asks", "Memory.ingest": "writes",
    "Memory.ingest_all": "writes", "Memory.settle": "makes",
    "Memory.journal": "what hosts said of sessions", "Memory.note_lifecycle": "writes", "Memory.take_turn": "writes",
    "Reader.bounds": "says what may be read", "Reader.conversation": "names",
    "Recall.grant_access": "says who reads", "Recall.on": "says who reads",
}  # fmt: skip
"""What else can be called, and what it does."""


GRAPHS = int(os.environ.get("LCM_SCOPE_GRAPHS", "200"))
"""Random workspaces of the long test: half a second of processor time each."""


def foreign(attempt: Attempt, found: World, text: str) -> list[str]:
    """The words and ids in an answer that are of scopes which may not be read."""
    own = set() if attempt.own_talk is None else {found.rules.conversation_scope(attempt.own_talk)}
    allowed = {*attempt.scopes, *own}
    secret = [word for word, scope in found.words.items() if scope not in allowed]
    if attempt.user_id is not None:
        secret += [word for word, user in found.dreamers.items() if user != attempt.user_id]
    secret += [one for one, scope in found.ids.items() if scope not in allowed and one not in attempt.asked]
    return [one for one in secret if re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text)]


def tried(graph: dict[str, Any], host: dict[str, Any], seen: Counter[str]) -> Counter[str]:
    """Try every door of a workspace: gives those that told foreign words, and counts in `seen` those that told own."""
    leaks = Counter[str]()
    seen["graphs"] += 1
    with world(graph) as made:
        asker = Asker(made, made.memory.identity(**host))
        has_own = set[str]()
        for attempt in attempts(asker):
            text = told(attempt)
            seen["tries"] += 1
            if found := foreign(attempt, made, text):
                leaks[f"{attempt.door}: {found[:3]} in {text[:300]}"] += 1
            if any(word in text for word in made.words) or any(one in text for one in made.ids):
                has_own.add(attempt.door)
        seen.update(has_own)
    return leaks


def _no_foreign_word(examples: int, *, derandomize: bool = False) -> None:
    seen = Counter[str]()

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None,
        derandomize=derandomize,
    )  # fmt: skip
    @given(graph=graphs, host=hosts)
    def check(graph: dict[str, Any], host: dict[str, Any]) -> None:
        assert not tried(graph, host, seen)

    check()
    assert seen["graphs"] >= examples
    silent = [door for door in sorted(ANSWERS) if seen[door] < examples / 10]
    assert not silent, f"told nothing at all: {silent} of {seen}"


def test_no_door_tells_a_foreign_word() -> None:
    _no_foreign_word(8, derandomize=True)


@pytest.mark.full
@pytest.mark.parametrize("part", range(4))
def test_no_door_tells_a_foreign_word_of_many_workspaces(part: int) -> None:
    _no_foreign_word(GRAPHS // 4)


def test_every_door_is_tried() -> None:
    found = {
        f"{owner.__name__}.{name}"
        for owner in (Memory, Reader, Recall)
        for name, member in vars(owner).items()
        if isinstance(member, FunctionType) and not name.startswith("_")
    }
    found |= {f"mcp {name}" for name in AGENT_TOOLS}
    assert found == ANSWERS | set(NO_ANSWERS)
    told = "\n".join(one.read_text(encoding="utf-8") for one in Path(__file__).parents[1].glob("pipelines/*.py"))
    _, *parts = re.split(r"^def (\w+)\(", told, flags=re.M)  # names and bodies in turn
    assert {name for name, body in zip(parts[::2], parts[1::2], strict=True) if "opened(command)" in body} == COMMANDS
