"""OpenAI-style chat: JSON or JSONL, of messages or of whole sessions.

A session is an object with `messages` (data sets also say `conversations` or `conversation`, or give a `prompt` of
messages and the `completion` to it), and perhaps `conversation_id`, `session_id`, an instant and `title`. Sessions that
name the same conversation are one, in the order of the file; each that names neither it nor a session is one of its
own, named by its `id`, else by the file. A message is one of OpenAI's or of Vercel's AI SDK (`parts`), and may carry
`id`, `name` (its author), `session_id` and an instant: `created_at`, `timestamp`, or what else files have (`said_at`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lcm.encoding import well_formed
from lcm.records.conversation import Event
from lcm.transcript.identity import native_id, said_at
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, Session, chat_message, sessions
from lcm.transcript.ui_message import is_ui_message

_SHAPES: tuple[tuple[str, ...], ...] = (("messages",), ("conversations",), ("conversation",), ("prompt", "completion"))
"""The lists in which a session has its messages; the first that are there hold them."""


@dataclass(frozen=True, slots=True)
class ChatReader:
    """Reads one conversation a file, or a session, or as many as its sessions name.

    What a session holds beside its messages is an event of type `session`, with null in place of its lists; the
    elements of other lists than those of messages are events too.
    """

    name = "chat"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(_is_session(value) or _is_telling(value) for value in values)

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
                    yield RecordedItem(file.name, chat_message(native, file.name))


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
    yield RecordedItem(conversation_id, Event("session", header), title)
    shape = next((shape for shape in _SHAPES if session.lists.issuperset(shape)), ())
    for element in session.elements:
        with file.record(element.line, element.place):
            if element.key in shape:
                started_at = said_at(header) if (element.key, element.number) == (shape[0], 1) else None
                said = chat_message(element.value, session_id, started_at)
                yield RecordedItem(conversation_id, said, title)
            else:
                yield RecordedItem(conversation_id, Event(well_formed(element.key), element.value), title)


def _is_session(value: object) -> bool:
    """Say whether this holds messages; without any yet, only under their usual key."""
    if not isinstance(value, dict):
        return False
    shapes = ([value.get(key) for key in shape] for shape in _SHAPES)
    is_empty = value.get("messages") == []
    return is_empty or any(
        all(isinstance(said, list) and any(map(_is_message, said[:1])) for said in one) for one in shapes
    )


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _is_telling(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _is_message(value)
        and ("content" in value or "tool_calls" in value or is_ui_message(value))
    )
