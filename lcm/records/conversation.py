"""What was said: messages, their parts, and what a host reports of its sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any, Literal

from lcm.clock import EPOCH

Role = Literal["system", "user", "assistant", "tool"]

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")

PartType = Literal[
    "text", "reasoning", "tool", "patch", "file", "subtask",
    "compaction", "step_start", "step_finish", "snapshot", "agent", "retry",
]  # fmt: skip

PART_TYPES: tuple[PartType, ...] = PartType.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a message."""

    part_type: PartType
    text: str | None = None
    """The block's words, if it has any."""
    tool_call_id: str | None = None
    """Joins a tool call to its result."""
    tool_name: str | None = None
    tool_input: str | None = None
    """The call's arguments as JSON text."""
    tool_output: str | None = None
    """The result as JSON text, where the block names one apart from its text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON. `raw` is the block as recorded, `slot` the message key that held it: what exact rebuilding needs."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript, with the exact original inside."""

    message_id: str
    role: Role
    content: str
    """The plain words, for search and for people; the whole message is in `parts` and `envelope`."""
    session_id: str
    created_at: datetime | None = None
    """None where the transcript does not say: the store then carries the last known instant forward."""
    author: str | None = None
    """Who speaks, where a role is not enough (two people, a team chat)."""
    parts: tuple[Part, ...] = ()
    envelope: Mapping[str, Any] = field(default_factory=dict)
    """JSON. The recorded message without its blocks: what exact rebuilding needs besides the parts."""
    files: tuple["LargeFile", ...] = ()
    """What is too large for a context; `content` names it, the parts hold it."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a session recorded beside its messages: its header, a model change, a compaction, a type unknown to us."""

    kind: str
    """The type that the record names."""
    native: Any
    """JSON: the record as it stands in the file."""
    after: int = 0
    """How many messages of the conversation stand before it."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One recorded conversation, in order."""

    conversation_id: str
    messages: tuple[Message, ...]
    workspace_id: str = "default"
    """Which haystack it belongs to: conversations of one workspace are searched together."""
    title: str | None = None
    events: tuple[Event, ...] = ()
    """In order; each says where it stands between the messages."""

    def instants(self) -> list[datetime]:
        """When each message is known to have been said: its own time, or the latest before it; else the epoch."""
        return list(accumulate((one.created_at or EPOCH for one in self.messages), max, initial=EPOCH))[1:]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What a host said of one of its sessions: advice, which nothing depends on."""

    entry_id: str
    happened_at: datetime
    hook: str
    """before_reset, session_end ..."""
    session_id: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """JSON: reason, message count, the next session ..."""


@dataclass(frozen=True, slots=True)
class LargeFile:
    """A text within a message that is too large for a context: a reference stands in its place in `Message.content`.

    The words themselves stay where they are, in the message's part.
    """

    file_id: str
    ordinal: int
    """Of the part that holds it."""
    position: int
    """Among the large files of that part, from 0."""
    name: str | None
    mime_type: str | None
    byte_size: int
    exploration_summary: str
