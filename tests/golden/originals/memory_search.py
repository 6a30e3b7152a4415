"""Which collections of the plugin answer a request of the host's own `memory_search`.

Source: libravdb memory 1.4.4, registered as an additional runtime beside its context engine.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lcm.writing.dream import asks_for_dreams

_QUERY_KEYS = ("query", "text", "input", "q")
_COUNT_KEYS = ("k", "limit", "top_k")
_DEFAULT_COUNT = 8


@dataclass(frozen=True, slots=True)
class Route:
    """A memory search request, routed to the collections that answer it."""

    text: str
    k: int
    """How many results at most."""
    collections: tuple[str, ...]
    """As the plugin names them: `session:ID`, `session_summary:ID`, `session_recall:ID`, `user:NAMESPACE`,
    `dream:NAMESPACE`, `global`."""


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
        text = next((params[key] for key in _QUERY_KEYS if isinstance(params.get(key), str) and params[key]), None)
        if text is None:
            return None
        session_id = _text(params, "session_id")
        namespace = durable_namespace(
            _text(params, "user_id"),
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
        return Route(text, self._count(params), collections)

    def _count(self, params: Mapping[str, Any]) -> int:
        for number in (*(params.get(key) for key in _COUNT_KEYS), self.top_k):
            if isinstance(number, int | float) and math.isfinite(number) and number > 0:
                return max(1, math.floor(number))
        return _DEFAULT_COUNT


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
