"""Who asks: what a host says of that, and how a request narrows it.

A host makes an `Identity` once; every door that answers somebody takes it. What a request says of itself goes through
`Identity.narrowed` alone: it can leave out what the host allows, and add nothing.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lcm.errors import LcmError
from lcm.memory.scopes.scopes import BYPASS_IDS, Scopes, parse_agent_id

_NAMES = ("agent_id", "user_id", "session_id", "session_key")
"""What a request may say of itself."""
_UNSEEN = ("Cc", "Cf")
"""Unicode's categories of what takes no place on a screen."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, and what that one may read."""

    rules: Scopes
    scopes: tuple[str, ...] | None = None
    """Whose documents may be read, and whose conversations; None = all, () = none."""
    agent_id: str | None = None
    user_id: str | None = None
    """Whose dreams; None = everybody's that lie in the scopes."""
    session_id: str | None = None
    """The conversation in which is asked."""

    def reads_conversation(self, conversation_id: str) -> bool:
        """Say whether the words of a conversation may be read: where the scope that it writes to may be."""
        return self.scopes is None or self.rules.conversation_scope(conversation_id) in self.scopes

    def narrowed(self, request: Mapping[str, Any]) -> "Identity":
        """The identity of a request that the host passes on.

        Where both name an agent, a user or a session, the host's counts; each agent that the request names, by its id
        or by a session, leaves no more of the scopes than that agent reads. What is no text names nobody.

        Args:
            request: agent_id, user_id, session_id and session_key count.

        Raises:
            LcmError: if one of these is blank, or names a reserved id.
        """
        named = {name: request[name] for name in _NAMES if isinstance(request.get(name), str)}
        for name, value in named.items():
            _refuse(name, value)
        sessions = [named.get(name, "") for name in ("session_id", "session_key")]
        scopes = self.scopes
        for agent in (named.get("agent_id"), *map(parse_agent_id, sessions)):
            if agent is not None:
                own = self.rules.accessible(agent)
                scopes = own if scopes is None else tuple(scope for scope in scopes if scope in own)
        asked = replace(
            self,
            scopes=scopes,
            agent_id=self.agent_id or named.get("agent_id"),
            user_id=self.user_id or named.get("user_id"),
        )
        session = self.session_id or named.get("session_id")
        return replace(asked, session_id=session if session and asked.reads_conversation(session) else None)


def identified(
    rules: Scopes,
    agent_id: str | None = None,
    *,
    user_id: str | None = None,
    session_id: str | None = None,
    scopes: Sequence[str] | None = None,
) -> Identity:
    """Who asks, by the host's word; where it says nothing, the owner of the workspace, who reads all.

    Args:
        rules: which agent reads what.
        agent_id: an id, or a session key that names one; a reserved id reads all.
        user_id: whose dreams are told; users are otherwise told apart by workspaces.
        session_id: the conversation in which is asked; without an agent it says who reads.
        scopes: which scopes may be read; None = those of the agent, else of the session.

    Raises:
        ValueError: if a name is blank, or the scopes are no list.
    """
    for name, value in {"agent_id": agent_id, "user_id": user_id, "session_id": session_id}.items():
        if value is not None and not _seen(value):
            raise ValueError(f"{name} must be an id, got {value!r}; None leaves it open")
    if isinstance(scopes, str):
        raise ValueError(f"scopes must be a list of scopes, got {scopes!r}")
    agent = None if agent_id is None else parse_agent_id(agent_id) or agent_id
    if scopes is not None:
        readable: tuple[str, ...] | None = tuple(scopes)
    elif agent is None and session_id is not None:
        readable = rules.conversation_readable(session_id)
    else:
        readable = rules.readable(agent)
    return Identity(rules, readable, agent, user_id, session_id)


def _refuse(name: str, value: str) -> None:
    """Refuse a name that a request may not bear."""
    seen = _seen(value)
    if not seen:
        raise LcmError(f"{name} of a request must name somebody, got {value!r}: leave it out")
    parts = [part.strip() for part in seen.split(":")]
    agent = parts[1] if name != "user_id" and parts[0] == "agent" and len(parts) > 1 else seen
    if agent in BYPASS_IDS:
        raise LcmError(f"{name} of a request must not name the reserved id {agent!r}, got {value!r}: a host alone may")


def _seen(text: str) -> str:
    """A name as a reader sees it: without what is not shown, in one width and case."""
    shown = "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) not in _UNSEEN)
    return shown.strip().casefold()
