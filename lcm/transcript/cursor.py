"""Cursor agent transcripts: JSONL of `{"role", "message"}`, and records with a `type` of their own, which are events.

Cursor puts what the user asked into `<user_query>`, and around it when that was and what else the model is shown: the
words of the message are the query alone. A user's record that holds nothing else than notices is no message. Results
of tools are not recorded, calls have no ids, and what the assistant says has no instant.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lcm.errors import TranscriptError
from lcm.files import is_below
from lcm.records.conversation import Event, Message
from lcm.transcript.fields import as_object, kind
from lcm.transcript.parts import decompose, enclosed
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile, without_ending
from lcm.transcript.wrapped import unwrapped, within, without

_NOTICES = ("timestamp", "system_reminder", "system_notification")
"""What stands beside words that are in no `<user_query>`."""
_ASKED_AT = re.compile(
    r"<timestamp>\w+, ([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}), (\d{1,2}:\d{2})\s([AP]M)"
    r" \(UTC(?:([+-])(\d{1,2})(?::(\d{2}))?)?\)</timestamp>"
)


@dataclass(frozen=True, slots=True)
class CursorReader:
    """Reads one conversation a file, named by the file, which Cursor names after the session.

    Sub-agents, `<session>/subagents/*.jsonl` beside `<session>/<session>.jsonl`, are read after it, each a conversation
    of its own.
    """

    name = "cursor"

    def detects(self, file: RecordedFile) -> bool:
        return isinstance(file.first, list) and any(map(_is_message, file.first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        yield from _session(file, file.name)
        for path in beside(file.path):
            agent = file.along(path)
            yield from file.following(agent, _session(agent, f"{file.name}/agent-{agent.name}"))


def beside(session: Path) -> list[Path]:
    """The files of a session's sub-agents, which are read along with its own."""
    folder = session.parent.resolve()
    if folder.name != without_ending(session):
        return []
    found = sorted((session.parent / "subagents").glob("*.jsonl"))
    return [path for path in found if path.is_file() and is_below(path.resolve(), [folder])]


def _session(file: RecordedFile, conversation_id: str) -> Iterator[RecordedItem]:
    for line, record in file.values():
        with file.record(line):
            is_said = "role" in as_object(record)
            item = _item(record, conversation_id) if is_said else Event(kind(record), record)
            yield RecordedItem(conversation_id, item)


def _item(record: dict[str, Any], session_id: str) -> Message | Event:
    native, role = record.get("message"), record["role"]
    if not isinstance(native, dict) or role not in ("user", "assistant"):
        raise TranscriptError("expected a `message` object of the `role` user or assistant")
    said = unwrapped(native, role, _query) if role == "user" else decompose(native, role)
    if role == "user" and not said.content and all(part.part_type == "text" for part in said.parts):
        return Event("notice", record)
    return Message(
        message_id="",
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=next(filter(None, map(_instant, _texts(native))), None) if role == "user" else None,
        parts=said.parts,
        envelope=enclosed(said.envelope, record, "message"),
    )


def _texts(native: dict[str, Any]) -> Iterator[str]:
    content = native.get("content")
    for block in content if isinstance(content, list) else [content]:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            yield text


def _query(text: str) -> str:
    """What a text holds as queries; where it marks none, all but the notices in it."""
    queries = within(text, "user_query")
    if queries:
        return "\n".join(query.strip() for query in queries)
    for notice in _NOTICES:
        text = without(text, notice)
    return text.strip()


def _instant(text: str) -> datetime | None:
    """When it was asked: a time of day without its zone is no instant."""
    if (told := _ASKED_AT.search(text)) is None:
        return None
    month, day, year, time, half, sign, hours, minutes = told.groups(default="")
    zone = f"{sign or '+'}{hours:0>2}{minutes:0>2}"
    with suppress(ValueError):
        return datetime.strptime(f"{month} {day} {year} {time} {half} {zone}", "%b %d %Y %I:%M %p %z").astimezone(UTC)
    return None


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or "type" in value or value.get("role") not in ("user", "assistant"):
        return False
    message = value.get("message")
    return isinstance(message, dict) and "role" not in message and isinstance(message.get("content"), list | str)
