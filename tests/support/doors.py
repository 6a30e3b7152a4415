"""Every door by which somebody is answered, tried with all that a stranger could ask of it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Recall
from lcm.errors import GrantError, LcmError
from lcm.memory.memory import Memory
from lcm.memory.scopes import Identity
from lcm.plugins.mcp_tools import AgentTools
from lcm.protocols.context import ContextRequest
from lcm.records.query import Query
from tests.lcm.context.recall.dags import START, recall
from tests.support.scope_graphs import ASKED_AT, EVERYWHERE, World

DREAMS = "what did I dream about"
_MOST = 10**6


class Attempt(NamedTuple):
    """One use of a door."""

    door: str
    scopes: tuple[str, ...]
    """What may come out of it."""
    asks: Callable[[], object]
    asked: str = ""
    """What the request itself says, which an error may repeat."""
    user_id: str | None = None
    own_talk: str | None = None
    """A conversation whose words the host itself names."""


@dataclass(frozen=True)
class Asker:
    """A host's word on who asks."""

    world: World
    host: Identity

    @property
    def scopes(self) -> tuple[str, ...]:
        assert self.host.scopes is not None
        return self.host.scopes


def attempts(asker: Asker) -> Iterator[Attempt]:
    """All that can be asked, by every door."""
    yield from _ranked(asker)
    yield from _conversations(asker)
    yield from _recall(asker)
    yield from _tools(asker)


def _batched(memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
    return memory.rank_batches(memory.batches(queries), queries, memory.system.ranking)


def _ranked(asker: Asker) -> Iterator[Attempt]:
    memory, scopes = asker.world.memory, asker.scopes
    for text in (EVERYWHERE, DREAMS):
        queries = [Query("q", text, ASKED_AT, scopes=scopes)]
        yield Attempt("Memory.rank", scopes, partial(memory.rank, queries))
        yield Attempt("Memory.recall", scopes, partial(memory.recall, queries))
        yield Attempt("Memory.batches", scopes, lambda queries=queries: [b.documents for b in memory.batches(queries)])
        batched = partial(_batched, memory, queries)
        yield Attempt("Memory.rank_batches", scopes, batched)
        yield Attempt("Memory.recalled", scopes, lambda queries=queries: memory.recalled(memory.rank(queries)))
        yield Attempt("Memory.search", scopes, partial(memory.search, text, ASKED_AT, scopes))
        if asker.host.agent_id is not None:
            yield Attempt("Memory.search", scopes, partial(memory.search, text, ASKED_AT, agent=asker.host.agent_id))
    yield Attempt("Memory.trace", scopes, partial(memory.trace, [Query("q", EVERYWHERE, ASKED_AT, scopes=scopes)]))
    for document_id in asker.world.ids:
        yield Attempt("Memory.history", scopes, partial(memory.history, document_id, scopes), document_id)


def _conversations(asker: Asker) -> Iterator[Attempt]:
    """Conversations that the host names: what is read for one is what its agent reads."""
    world, memory = asker.world, asker.world.memory
    for talk in world.talks:
        scopes = world.rules.conversation_readable(talk)
        for text in (EVERYWHERE, DREAMS):
            query = Query("q", text, ASKED_AT, conversation_id=talk)
            context = partial(memory.context, query, 2000)
            yield Attempt("Memory.context", scopes, context, talk, own_talk=talk)
            for name in ("rank",) if text == DREAMS else ("rank", "recall", "trace"):
                yield Attempt(f"Memory.{name}", scopes, partial(getattr(memory, name), [query]), talk, own_talk=talk)
        asks = [ContextRequest(2000, EVERYWHERE, (), ASKED_AT)]
        yield Attempt("Memory.assemble", (), partial(memory.assemble, talk, asks), talk, own_talk=talk)


def _recall(asker: Asker) -> Iterator[Attempt]:
    world, scopes = asker.world, asker.scopes
    reader = recall(max_expand_tokens=_MOST).on(world.memory.store, asker.host.reads_conversation)
    for where in (None, *world.talks, *range(1, len(world.talks) + 2)):
        for pattern, mode in ((EVERYWHERE, "full_text"), (r"zq\d+x", "regex")):
            ask = partial(reader.grep, pattern, mode=mode, conversation=where)
            yield Attempt("Reader.grep", scopes, ask, str(where))
    for one in (*world.ids, *world.talks):
        yield Attempt("Reader.describe", scopes, partial(reader.describe, one, content=True), one)
        yield Attempt("Reader.grep", scopes, partial(reader.grep, one, mode="full_text"), one)
        yield Attempt("Reader.items", scopes, partial(reader.items, [one]), one)
        yield Attempt("Reader.expand", scopes, partial(reader.expand, [one], depth=9, has_messages=True), one)
    for number in range(1, 3 * len(world.talks) + 2):
        yield Attempt("Reader.messages", scopes, partial(reader.messages, [number]))


def _tools(asker: Asker) -> Iterator[Attempt]:
    """The tools that an agent has over MCP, in the hands of the asker and of whom it lends to."""
    world, scopes = asker.world, asker.scopes
    configured = recall(max_expand_tokens=_MOST)
    reader = configured.on(world.memory.store, asker.host.reads_conversation)
    summaries = [one for one in world.ids if one.startswith("sum_")]
    numbers = range(1, len(world.talks) + 1)
    for one_reader in (reader, *_lent(world, configured, reader, summaries)):
        agents = AgentTools(configured, one_reader, _Open(world.memory), asker.host, lambda: ASKED_AT)
        for tool, given, asked in _calls_of_agents((*world.talks, *map(str, (*numbers, len(numbers) + 1))), summaries):
            user = asker.host.user_id if tool == "search" else None
            yield Attempt(f"mcp {tool}", scopes, partial(agents.call, tool, given), asked, user)
    for number in numbers:
        ask = partial(configured.expand_query, reader, EVERYWHERE, lambda: START, query=EVERYWHERE, conversation=number)
        yield Attempt("Recall.expand_query", scopes, ask)


Call = tuple[str, dict[str, Any], str]
"""A tool, its arguments, and what these name."""
_ASKED = {"prompt": EVERYWHERE, "query": EVERYWHERE}


def _calls_of_agents(places: Sequence[str], summaries: Sequence[str]) -> Iterator[Call]:
    yield "search", {"query": EVERYWHERE, "limit": 200}, ""
    yield "search", {"query": DREAMS}, ""
    yield from (("context", {"conversation": one, "query": EVERYWHERE}, one) for one in places)
    for place in ({}, *({"conversation": one} for one in places)):
        yield "grep", {"pattern": EVERYWHERE, **place}, str(place)
        yield "expand_query", {**_ASKED, **place}, str(place)
    for one in (*summaries, "msg#1", "msg#4"):
        yield "describe", {"id": one}, one
        yield "expand", {"ids": [one]}, one
        yield "expand_query", {"prompt": EVERYWHERE, "ids": [one]}, one


@dataclass(frozen=True)
class _Open:
    """A memory that nobody else writes to."""

    memory: Memory

    def current(self) -> Memory:
        return self.memory


def _lent(world: World, configured: Recall, reader: Reader, summaries: Sequence[str]) -> Iterator[Reader]:
    """Readers of sub-agents: of a conversation, of summaries, with few tokens, after the end of their grant.

    Of what the asker may not read nothing is lent.
    """
    for number in range(1, len(world.talks) + 1):
        try:
            lent = configured.grant_access(reader, [number], lambda: START)
        except GrantError as refusal:
            assert not any(word in str(refusal) for word in (*world.words, *world.talks))
            continue
        yield lent
        yield configured.grant_access(reader, [number], lambda: START, summary_ids=summaries)
        yield replace(configured, max_expand_tokens=9).grant_access(reader, [number], lambda: START)
        yield _ended(configured, reader, number)


def _ended(configured: Recall, reader: Reader, number: int) -> Reader:
    now = [START]
    lent = configured.grant_access(reader, [number], lambda: now[0])
    now[0] += timedelta(hours=1)
    return lent


def told(attempt: Attempt) -> str:
    """All that an attempt gives, be it an answer or a refusal."""
    try:
        return plain(attempt.asks())
    except (LcmError, ValueError) as refusal:
        return str(refusal)


def plain(found: object) -> str:
    if isinstance(found, pl.DataFrame):
        return json.dumps(found.to_dicts(), default=str, ensure_ascii=False)
    if isinstance(found, list | tuple) and not hasattr(found, "_asdict"):
        return "\n".join(map(plain, found))
    if isinstance(found, dict):
        return "\n".join(f"{name}: {plain(one)}" for name, one in found.items())
    if is_dataclass(found) and not isinstance(found, type):
        return json.dumps(asdict(found), default=str, ensure_ascii=False)
    return str(found)
