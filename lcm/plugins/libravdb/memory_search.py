"""A memory as the host's own search tool asks it: `memory_search` and the reading of what it cites.

Source: libravdb memory 1.4.4, registered as an additional runtime beside its context engine.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.memory.scopes.scopes import Identity
from lcm.protocols.context import ShowsTail
from lcm.records.query import Query
from lcm.writing.dream.promotion import is_dream_of
from lcm.writing.dream.query import asks_for_dreams

_QUERY_KEYS = ("query", "text", "input", "q")
_COUNT_KEYS = ("k", "limit", "top_k")
_DEFAULT_COUNT = 8
_WINDOW_LINES = 200


@dataclass(frozen=True, slots=True)
class Route:
    """A memory search request, routed to the collections that answer it."""

    text: str
    k: int
    """How many results at most."""
    collections: tuple[str, ...]
    """As the plugin names them: `session:ID`, `session_summary:ID`, `session_recall:ID`, `user:NAMESPACE`,
    `dream:NAMESPACE`, `global`."""
    session_id: str | None
    namespace: str


@dataclass(frozen=True, slots=True)
class Bridge:
    """The plugin's settings that shape its memory search tool."""

    top_k: float | None = None
    """Results where a request names no number; None = 8."""
    searches_summaries: bool = False
    """Of the asker's session its summaries answer, not its turns."""
    searches_recall: bool = False
    """Of the asker's session the turns before its recent tail answer; summaries come first where both are set."""

    def route(self, params: Mapping[str, Any], agent_id: str | None = None) -> Route | None:
        """Read a request as leniently as the plugin does; None where it asks nothing.

        Args:
            params: query (or text, input, q), k (or limit, top_k), user_id, session_id, session_key, agent_id.
            agent_id: the host's own, which counts before the request's.
        """
        return self._route(params, agent_id)

    def _route(
        self,
        params: Mapping[str, Any],
        agent_id: str | None,
        user_id: str | None = None,
        session_id: str | None = None,
    ) -> Route | None:
        text = next((params[key] for key in _QUERY_KEYS if isinstance(params.get(key), str) and params[key]), None)
        if text is None:
            return None
        session_id = session_id or _text(params, "session_id")
        namespace = durable_namespace(
            user_id or _text(params, "user_id"),
            _text(params, "session_key"),
            agent_id or _text(params, "agent_id"),
            f"session:{session_id}" if session_id else None,
        )
        if asks_for_dreams(text):
            collections: tuple[str, ...] = (f"dream:{namespace}",)
        else:
            kind = "session_summary" if self.searches_summaries else "session_recall" if self.searches_recall else ""
            own = (f"{kind or 'session'}:{session_id}",) if session_id else ()
            collections = (*own, f"user:{namespace}", "global")
        return Route(text, self._count(params), collections, session_id, namespace)

    def _count(self, params: Mapping[str, Any]) -> int:
        for number in (*(params.get(key) for key in _COUNT_KEYS), self.top_k):
            if isinstance(number, int | float) and math.isfinite(number) and number > 0:
                return max(1, math.floor(number))
        return _DEFAULT_COUNT

    def search(
        self, memory: Memory, params: Mapping[str, Any], asked_at: datetime, host: Identity | None = None
    ) -> list[dict[str, Any]]:
        """Answer a request as the host expects it: path, startLine, endLine, score, snippet, source, citation.

        The memory's own ranking answers, as for any query; a session of the plugin is a conversation of ours.

        Args:
            memory: what is searched.
            params: the request, as `route` reads it.
            asked_at: when; nothing later is seen.
            host: who asks, by the host's word, as `Memory.identity` makes it; the request only narrows it. None = the
                workspace is one user's, and what the request does not leave out is read.

        Raises:
            LcmError: if the request bears a blank name or a reserved one.
        """
        asker = (host or memory.identity()).narrowed(params)
        route = self._route(params, asker.agent_id, asker.user_id, asker.session_id)
        if route is None:
            return []
        query = Query(
            "memory_search",
            route.text,
            asked_at,
            conversation_id=asker.session_id,
            scopes=asker.scopes,
            shown_message_ids=self._tail(memory, asker.session_id),
        )
        found = memory.recall([query])
        results: list[dict[str, Any]] = []
        for one in memory.recalled(found).get(query.query_id, ()):
            if one.kind == "dream" and not is_dream_of(one.document_id, asker.user_id):
                continue
            collection = route.collections[0]
            if len(route.collections) > 1:
                named = {"session": route.collections[0], "global": "global"}
                collection = named.get(one.scope_class, f"user:{route.namespace}")
            if self.searches_summaries and one.scope_class == "session" and one.kind != "summary":
                continue
            results.append(
                {
                    "path": f"{quote(collection, safe='')}::{quote(one.document_id, safe='')}",
                    "startLine": 1,
                    "endLine": max(1, one.text.count("\n") + 1),
                    "score": one.score,
                    "snippet": one.text,
                    "source": "sessions" if one.scope_class == "session" else "memory",
                    "citation": f"{collection}:{one.document_id}",
                }
            )
        return results[: route.k]

    def _tail(self, memory: Memory, key: str | None) -> tuple[str, ...]:
        """The newest turns of the session, where its recall is searched without them."""
        assembly = memory.system.assembly
        if not self.searches_recall or self.searches_summaries or key is None or not isinstance(assembly, ShowsTail):
            return ()
        if key not in memory.store.conversations()["conversation_id"]:
            return ()
        return tuple(assembly.tail_message_ids(memory.store.context_records(key), 0))


def durable_namespace(
    user_id: str | None, session_key: str | None, agent_id: str | None, fallback: str | None = None
) -> str:
    """Whose durable memory it is: the first that is not blank of the user's id, the session's key, the agent's id and
    the fallback; else "default"."""
    named = ((user_id, ""), (session_key, "session-key:"), (agent_id, "agent-id:"), (fallback, ""))
    for value, prefix in named:
        if value is not None and value.strip():
            return prefix + value.strip()
    return "default"


def _text(params: Mapping[str, Any], key: str) -> str | None:
    value = params.get(key)
    return value if isinstance(value, str) and value else None


def read_file(
    memory: Memory, path: str, first_line: int = 1, lines: int = _WINDOW_LINES, host: Identity | None = None
) -> str:
    """The lines of a document that a result cites, from `first_line` (1-based) on.

    Args:
        memory: whose document it is.
        path: of a result.
        first_line: the first line to give.
        lines: how many at most.
        host: who reads, by the host's word; None = the workspace is one user's.

    Raises:
        LcmError: if the path cites nothing that is there and may be read.
    """
    collection, separator, document_id = path.partition("::")
    if not separator or not collection:
        raise LcmError(f"path must be COLLECTION::ID, percent-encoded, as a search result gives it, got {path!r}")
    reader = host or memory.identity()
    found = memory.store.document(unquote(document_id), reader.scopes)
    if found.kind == "dream" and not is_dream_of(found.document_id, reader.user_id):
        raise LcmError(f"there is no document {found.document_id!r} that may be read")
    start = max(0, first_line - 1)
    return "\n".join(found.text.split("\n")[start : start + lines])
