"""OpenAI-style chat: JSON or JSONL, of messages or of whole sessions.

A session is an object with `messages` (data sets also say `conversations` or `conversation`, or give a `prompt` and the
`completion` to it, messages or texts), and perhaps `conversation_id`, `session_id`, an instant and `title`. Sessions
that name the same conversation are one, in the order of the file; each that names neither it nor a session is one of
its own, named by its `id`, else by the file. A message is one of OpenAI's or of Vercel's AI SDK (`parts`), and may
carry `id`, `name` (its author), `session_id`, an instant (`created_at`, `timestamp`, or what else files have:
`said_at`), and where no session holds it a `conversation_id`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lcm.encoding import well_formed
from lcm.records.conversation import Event, Message, Role
from lcm.transcript.identity import native_id, said_at
from lcm.transcript.plain_text import plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, Element, Session, chat_message, sessions, value_part
from lcm.transcript.ui_message import is_ui_message

_SIDES: dict[str, Role] = {"prompt": "user", "completion": "assistant"}
"""Where a session has what was asked and answered, and who says one that is a text."""
_SHAPES: tuple[tuple[str, ...], ...] = (("messages",), ("conversations",), ("conversation",), tuple(_SIDES))
"""The keys under which a session has its messages; the first that are there hold them."""


@dataclass(frozen=True, slots=True)
class ChatReader:
    """Reads one conversation a file, or a session, or as many as its sessions name.

    What a session holds beside its messages is an event of type `session`, with null in place of its lists; the
    elements of other lists than those of messages are events too.
    """

    name = "chat"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        is_marked = any(_is_message(value) and value["role"].startswith("_") for value in values)
        return not is_marked and any(_is_session(value) or _is_telling(value) for value in values)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        first = [file.first] if isinstance(file.first, dict) else file.first
        known = next((value for value in first if _is_session(value) or _is_message(value)), None)
        if _is_session(known):
            unnamed = ConversationIds()
            for session in sessions(file):
                yield from chat_session(session, file, unnamed)
        else:
            for line, native in file.values():
                with file.record(line):
                    named = native_id(native.get("conversation_id")) if isinstance(native, dict) else ""
                    yield RecordedItem(named or file.name, chat_message(native, named or file.name))


def chat_session(session: Session, file: RecordedFile, unnamed: ConversationIds) -> Iterator[RecordedItem]:
    """A session and its messages; its own instant is that of its first message, unless that has one."""
    header = session.header
    conversation_id = native_id(header.get("conversation_id"))
    if not conversation_id:
        # A session id alone says that the session is part of a conversation: the file's.
        is_part = bool(native_id(header.get("session_id")))
        conversation_id = file.name if is_part else unnamed.name(native_id(header.get("id")) or file.name)
    session_id = native_id(header.get("session_id")) or conversation_id
    title = well_formed(header["title"]) if isinstance(header.get("title"), str) else None
    texts = {key for key in _SIDES if isinstance(header.get(key), str)}
    shape = next((shape for shape in _SHAPES if (session.lists | texts).issuperset(shape)), ())
    said_in = texts.intersection(shape)
    yield RecordedItem(conversation_id, Event("session", header | dict.fromkeys(said_in)), title)
    for element in session.elements if shape != tuple(_SIDES) else _in_turn(session, said_in):
        with file.record(element.line, element.place):
            if element.key in shape:
                started_at = said_at(header) if (element.key, element.number) == (shape[0], 1) else None
                if element.key in said_in:
                    said = _side(element.key, element.value, session_id, started_at)
                else:
                    said = chat_message(element.value, session_id, started_at)
                yield RecordedItem(conversation_id, said, title)
            else:
                yield RecordedItem(conversation_id, Event(well_formed(element.key), element.value), title)


def _in_turn(session: Session, texts: Collection[str]) -> list[Element]:
    """What stands in a session of two sides, the prompt before the completion."""
    places = {key: place for place, key in enumerate(_SIDES)}
    sides = [Element(session.line, key, 1, session.header[key]) for key in texts]
    return sorted([*session.elements, *sides], key=lambda element: places.get(element.key, len(places)))


def _side(key: str, text: str, session_id: str, said_at: datetime | None) -> Message:
    return Message(
        message_id="",
        role=_SIDES[key],
        content=plain_text({"content": text}),
        session_id=session_id,
        created_at=said_at,
        parts=(value_part(key, text),),
        envelope={"native": {key: None}, "slots": {key: "value"}},
    )


def _is_session(value: object) -> bool:
    """Say whether this holds messages; without any yet, only under their usual key."""
    if not isinstance(value, dict):
        return False
    return value.get("messages") == [] or any(all(_is_said(value, key) for key in shape) for shape in _SHAPES)


def _is_said(session: Mapping[str, Any], key: str) -> bool:
    """Say whether a session has messages under a key, or a text that is one."""
    said = session.get(key)
    is_text = key in _SIDES and isinstance(said, str)
    return is_text or (isinstance(said, list) and any(map(_is_message, said[:1])))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _is_telling(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _is_message(value)
        and ("content" in value or "tool_calls" in value or is_ui_message(value))
    )
