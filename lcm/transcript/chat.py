"""OpenAI-style chat: JSON or JSONL, of messages or of whole sessions.

A session is an object with `messages`, and perhaps `conversation_id`, `session_id`, `created_at` and `title`.
Sessions that name the same conversation are one, in the order of the file. A message may carry `id`, `name` (its
author), `session_id`, and `created_at` or `timestamp`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.records import Message, Transcript
from lcm.transcript.identity import native_id, recorded_instant, unique_id
from lcm.transcript.lines import first_value, json_document, json_lines, read_text, stem
from lcm.transcript.parts import decompose

_INSTANT_KEYS = ("created_at", "timestamp")


@dataclass(frozen=True, slots=True)
class ChatReader:
    """Reads one conversation a file, or as many as its sessions name."""

    name = "chat"

    def detects(self, path: Path) -> bool:
        value, _ = first_value(path, read_text(path))
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, dict) and isinstance(first.get("messages"), list):
            return all(map(_is_message, first["messages"][:1]))
        return _is_message(first) and ("content" in first or "tool_calls" in first)

    def read(self, path: Path) -> list[Transcript]:
        titles: dict[str, str | None] = {}
        messages: dict[str, list[Message]] = {}
        for session in _sessions(path):
            conversation_id = native_id(session.header.get("conversation_id")) or stem(path)
            title = session.header.get("title")
            if titles.get(conversation_id) is None:
                titles[conversation_id] = well_formed(title) if isinstance(title, str) else None
            earlier = messages.setdefault(conversation_id, [])
            earlier += _session_messages(session, conversation_id, len(earlier) + 1)
        return [Transcript(key, tuple(messages[key]), title=title) for key, title in titles.items()]


class _Session(NamedTuple):
    where: str
    header: dict[str, Any]
    messages: list[tuple[str, Any]]
    """Each with where it stands, for errors."""


def _sessions(path: Path) -> list[_Session]:
    values = _values(path)
    if values and _is_message(values[0][1]):
        return [_Session(str(path), {}, values)]
    return [_session(where, value) for where, value in values]


def _values(path: Path) -> list[tuple[str, Any]]:
    """Read the lines of JSONL or the elements of a JSON array, each with where it stands."""
    text = read_text(path)
    value, is_whole_file = first_value(path, text)
    if isinstance(value, dict) and not is_whole_file:
        return [(f"{path}:{number}", value) for number, value in json_lines(path, text)]
    document = json_document(path, text)
    if isinstance(document, list):
        return [(f"{path}: element {number}", value) for number, value in enumerate(document, start=1)]
    return [(str(path), document)]


def _session(where: str, value: object) -> _Session:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise TranscriptError(f"{where}: expected a session, an object with a list of `messages`")
    numbered = enumerate(value["messages"], start=1)
    return _Session(where, value, [(f"{where}: message {number}", native) for number, native in numbered])


def _session_messages(session: _Session, conversation_id: str, position: int) -> Iterator[Message]:
    """Read a session's messages; the first of them is at `position` of the conversation.

    A session's own instant dates its first message, unless that one has its own.
    """
    session_id = native_id(session.header.get("session_id")) or conversation_id
    started_at = recorded_instant(session.header, ("created_at",), session.where)
    for offset, (where, native) in enumerate(session.messages):
        if not _is_message(native):
            raise TranscriptError(f"{where}: expected a message, an object with a `role`")
        said = decompose(native)
        own_instant = recorded_instant(native, _INSTANT_KEYS, where)
        author = native.get("name")
        yield Message(
            message_id=unique_id(conversation_id, native.get("id"), position + offset),
            role=said.role,
            content=said.content,
            session_id=native_id(native.get("session_id")) or session_id,
            created_at=own_instant or (started_at if offset == 0 else None),
            # The name on a tool's message is the tool's; its parts keep it.
            author=well_formed(author) if isinstance(author, str) and said.role != "tool" else None,
            parts=said.parts,
            envelope=said.envelope,
        )


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)
