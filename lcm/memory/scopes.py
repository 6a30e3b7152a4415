"""Which scopes an agent reads and writes, and who asks, by the host's word.

A scope is a name that documents carry: "global", or "TYPE:ID" of a built-in type, or any other name that is defined.
A host makes an `Identity` once; every door that answers somebody takes it.

Source: memory-lancedb-pro, scopes; the identity is ours.
"""

import logging
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lcm.javascript import WHITE_SPACE, trim
from lcm.records.document import GLOBAL_SCOPE

BYPASS_IDS = ("system", "undefined")
"""Ids that read everything, and write only where a scope is named."""

_BUILT_IN_PREFIXES = ("agent:", "custom:", "reflection:agent:", "project:", "user:")

_log = logging.getLogger(__name__)
_UNSEEN = ("Cc", "Cf")
"""Unicode's categories of what takes no place on a screen."""


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes that are defined, and which of them each agent reads and writes.

    An agent reads its entry in `agent_access` and its own reflection scope; without an entry the global scope, its
    own, and its own reflection scope; and the shared scopes in any case. An empty entry leaves it nothing but its own
    reflection scope and the shared ones. Nobody in particular (no id) and the bypass ids read everything.
    """

    default: str = GLOBAL_SCOPE
    """Where is written what no agent's own scope takes."""
    definitions: Mapping[str, str | None] = field(default_factory=dict)
    """Name -> description. The global scope is defined in any case."""
    agent_access: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Agent id -> scopes."""
    shared: Sequence[str] = ()
    """Defined as well, and read by every agent."""

    def __post_init__(self) -> None:
        if self.default != GLOBAL_SCOPE and self.default not in self.definitions:
            named = ", ".join(dict.fromkeys((GLOBAL_SCOPE, *self.definitions)))
            raise ValueError(f"default must be one of the definitions ({named}), got {self.default!r}")
        for agent_id, scopes in self.agent_access.items():
            if is_bypass_id(trim(agent_id)):
                raise ValueError(f"agent_access must not name a reserved id, got {agent_id!r}")
            if isinstance(scopes, str):
                raise ValueError(f"agent_access of {agent_id!r} must be a list of scopes, got {scopes!r}")
            if unknown := [scope for scope in scopes if not self.is_valid(scope)]:
                _log.warning("agent_access of %r names scopes that are not defined: %s", agent_id, ", ".join(unknown))

    @property
    def names(self) -> tuple[str, ...]:
        """Every defined scope, the global one first."""
        return tuple(dict.fromkeys((GLOBAL_SCOPE, *self.definitions, *self.shared)))

    def accessible(self, agent_id: str | None) -> tuple[str, ...]:
        """The scopes that an agent can reach, by name; of an id that is not filtered, all that are defined."""
        known = self._filtered_id(agent_id)
        if known is None:
            return self.names
        own = reflection_scope(known)
        entry = self._entries().get(known, (GLOBAL_SCOPE, agent_scope(known)))
        missing = () if own in entry else (own,)
        return (*entry, *missing, *(scope for scope in dict.fromkeys(self.shared) if scope not in (*entry, own)))

    def readable(self, agent_id: str | None) -> tuple[str, ...] | None:
        """The scopes that an agent's searches are kept to: None = no filter, () = nothing is found."""
        return None if self._filtered_id(agent_id) is None else self.accessible(agent_id)

    def conversation_readable(self, conversation_id: str) -> tuple[str, ...]:
        """The scopes that a conversation reads: those of the agent that its id names. One that names none reads what it
        writes, and what everybody reads."""
        agent = parse_agent_id(conversation_id)
        if agent is None:
            return tuple(dict.fromkeys((GLOBAL_SCOPE, self.default, *self.shared)))
        return self.accessible(agent)

    def conversation_scope(self, conversation_id: str) -> str:
        """Where a conversation writes that names no scope."""
        return self.default_write(parse_agent_id(conversation_id))

    def default_write(self, agent_id: str | None) -> str:
        """Where an agent writes that names no scope: its own scope where it can reach that, else the default.

        Raises:
            ValueError: for a bypass id, which must name a scope.
        """
        if agent_id is not None and is_bypass_id(agent_id):
            raise ValueError(f"the reserved id {agent_id!r} must name the scope that it writes to")
        # The id as given, as in the original: one with white space around it has no scope of its own.
        own = agent_scope(agent_id or "")
        has_own = self._filtered_id(agent_id) is not None and own in self.accessible(agent_id)
        return own if has_own else self.default

    def is_accessible(self, scope: str, agent_id: str | None) -> bool:
        """Say whether an agent can reach a scope; an id that is not filtered reaches every valid one."""
        if self._filtered_id(agent_id) is None:
            return self.is_valid(scope)
        return scope in self.accessible(agent_id)

    def is_valid(self, scope: str) -> bool:
        """Say whether a scope is defined or of a built-in type; white space around it does not count."""
        name = trim(scope)
        return name in self.names or name.startswith(_BUILT_IN_PREFIXES)

    def _filtered_id(self, agent_id: str | None) -> str | None:
        """The id without white space around it; None for those that read everything."""
        if agent_id is None or is_bypass_id(agent_id):
            return None
        return trim(agent_id) or None

    def _entries(self) -> dict[str, tuple[str, ...]]:
        return {trim(agent_id): tuple(scopes) for agent_id, scopes in self.agent_access.items() if trim(agent_id)}


def agent_scope(agent_id: str) -> str:
    return f"agent:{agent_id}"


def reflection_scope(agent_id: str) -> str:
    return f"reflection:agent:{agent_id}"


def is_bypass_id(agent_id: str) -> bool:
    return agent_id in BYPASS_IDS


def parse_agent_id(session_key: str) -> str | None:
    """The agent that a session key "agent:ID" or "agent:ID:..." names; None for any other key, and for reserved ids."""
    prefix, _, rest = session_key.strip(WHITE_SPACE).partition(":")
    agent_id = rest.partition(":")[0].strip(WHITE_SPACE)
    return agent_id if prefix == "agent" and agent_id and not is_bypass_id(agent_id) else None


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
