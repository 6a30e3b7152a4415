"""Who asks, by the host's word: every door that answers somebody takes such an `Identity`."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.memory.scopes.scopes import Scopes, parse_agent_id

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

    def reads_conversation(self, conversation_id: str) -> bool:
        """Say whether the words of a conversation may be read: where the scope that it writes to may be."""
        return self.scopes is None or self.rules.conversation_scope(conversation_id) in self.scopes


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
        if value is not None and _is_blank(value):
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
    return Identity(rules, readable, agent, user_id)


def _is_blank(text: str) -> bool:
    """Whether a reader sees nothing of a name."""
    return not "".join(char for char in text if unicodedata.category(char) not in _UNSEEN).strip()
