"""OpenAI-style chat: JSON or JSONL, of messages or of whole sessions.

A session is an object with `messages`, and perhaps `conversation_id`, `session_id`, `created_at` and `title`.
Sessions that name the same conversation are one, in the order of the file. A message may carry `id`, `name` (its
author), `session_id`, and `created_at` or `timestamp`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.protocols import Recorded
from lcm.records import Event, Message
from lcm.transcript.identity import native_id, recorded_instant
from lcm.transcript.parts import decompose
from lcm.transcript.recorded_file import RecordedFile


@dataclass(frozen=True, slots=True)
class ChatReader:
    """Reads one conversation a file, or as many as its sessions name.

    What a session holds beside its messages is an event of type `session`, with null in their place.
    """

    name = "chat"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(_is_session(value) or _is_telling(value) for value in values)

    def read(self, file: RecordedFile) -> Iterator[Recorded]:
        if isinstance(file.first, dict):
            yield from _document(file)
        elif _is_session(next((value for value in file.first if _is_session(value) or _is_message(value)), None)):
            for line, session in file.values():
                with file.record(line):
                    yield from _session(session, file, line)
        else:
            for line, native in file.values():
                with file.record(line):
                    yield Recorded(file.name, _message(native, {}, file.name, is_first=False))


def _document(file: RecordedFile) -> Iterator[Recorded]:
    """One session over many lines: its messages are never all in memory."""
    conversation_id, title = _conversation_id(file.header, file), _title(file.header)
    yield Recorded(conversation_id, Event("session", file.header), title)
    is_first = True
    for member in file.members():
        if not member.is_element:
            continue
        with file.record(member.line):
            if member.key == "messages":
                said = _message(member.value, file.header, conversation_id, is_first=is_first)
                is_first = False
                yield Recorded(conversation_id, said, title)
            else:
                yield Recorded(conversation_id, Event(str(member.key), member.value), title)


def _session(session: object, file: RecordedFile, line: int) -> Iterator[Recorded]:
    if not isinstance(session, dict) or not isinstance(session.get("messages"), list):
        raise TranscriptError("expected a session, an object with a list of `messages`")
    conversation_id, title = _conversation_id(session, file), _title(session)
    yield Recorded(conversation_id, Event("session", {**session, "messages": None}), title)
    for number, native in enumerate(session["messages"], start=1):
        with file.record(line, f"message {number}: "):
            said = _message(native, session, conversation_id, is_first=number == 1)
            yield Recorded(conversation_id, said, title)


def _message(native: object, session: Mapping[str, Any], conversation_id: str, *, is_first: bool) -> Message:
    """Read a message; the instant of its session is that of the first one, unless that has its own."""
    if not isinstance(native, dict) or not _is_message(native):
        raise TranscriptError("expected a message, an object with a `role`")
    said = decompose(native)
    created_at = recorded_instant(native, ("created_at", "timestamp"))
    author = native.get("name")
    return Message(
        message_id=native_id(native.get("id")),
        role=said.role,
        content=said.content,
        session_id=native_id(native.get("session_id")) or native_id(session.get("session_id")) or conversation_id,
        created_at=created_at or (recorded_instant(session, ("created_at",)) if is_first else None),
        # The name on a tool's message is the tool's; its parts keep it.
        author=well_formed(author) if isinstance(author, str) and said.role != "tool" else None,
        parts=said.parts,
        envelope=said.envelope,
    )


def _conversation_id(session: Mapping[str, Any], file: RecordedFile) -> str:
    return native_id(session.get("conversation_id")) or file.name


def _title(session: Mapping[str, Any]) -> str | None:
    title = session.get("title")
    return well_formed(title) if isinstance(title, str) else None


def _is_session(value: object) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else None
    return isinstance(messages, list) and all(map(_is_message, messages[:1]))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _is_telling(value: object) -> bool:
    return isinstance(value, dict) and _is_message(value) and ("content" in value or "tool_calls" in value)
