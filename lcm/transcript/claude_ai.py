"""Claude.ai exports: an array of conversations (`conversations.json`), one a line, or one alone.

A conversation holds its `chat_messages` as they were said; each names the one before it by `parent_message_uuid`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part
from lcm.transcript.branches import doubts, suffixes
from lcm.transcript.fields import text_in
from lcm.transcript.identity import native_id, recorded_instant
from lcm.transcript.parts import decompose, extended
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, sessions, value_part

_MESSAGES = "chat_messages"
_ROOT = "00000000-0000-4000-8000-000000000000"
"""Named as the parent of what begins a conversation."""


@dataclass(frozen=True, slots=True)
class ClaudeAiReader:
    """Reads the branch that `current_leaf_message_uuid`, else the last message, ends as the conversation, and each
    other one as a conversation of its own.

    What stands beside the messages is an event of type `session`, with null in place of its lists; an element of
    another list is an event named by the list. What was read of an attachment are words of the message that brings it.
    """

    name = "claude_ai"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(map(_is_conversation, values))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for survey, session in zip(sessions(RecordedFile(file.path)), sessions(file), strict=True):
            header = session.header
            conversation_id = ids.name(native_id(header.get("uuid")) or file.name)
            title = text_in(header, "name") or None
            yield RecordedItem(conversation_id, Event("session", header), title)
            parents = _parents(element.value for element in survey.elements if element.key == _MESSAGES)
            branches = suffixes(parents, text_in(header, "current_leaf_message_uuid"))
            for element in session.elements:
                with file.record(element.line, element.place):
                    if element.key == _MESSAGES:
                        message = _message(element.value, conversation_id)
                        yield RecordedItem(conversation_id + branches[_id(element.value)], message, title)
                    else:
                        yield RecordedItem(conversation_id, Event(well_formed(element.key), element.value), title)
            file.doubts += doubts(parents, f"{file.path}: conversation {conversation_id}")


def _parents(messages: Iterable[object]) -> dict[str, str | None]:
    """The id of each message to that of the one which it answers: the one before it in exports that name none."""
    parents: dict[str, str | None] = {}
    before: str | None = None
    for native in messages:
        named = text_in(native, "parent_message_uuid") if isinstance(native, dict) else None
        parents.setdefault(_id(native), before if named is None else None if named == _ROOT else named)
        before = _id(native) or None
    return parents


def _id(native: object) -> str:
    return native_id(native.get("uuid")) if isinstance(native, dict) else ""


def _message(native: object, session_id: str) -> Message:
    if not isinstance(native, dict) or not isinstance(native.get("sender"), str):
        raise TranscriptError("expected a message, an object with a `sender`")
    said = decompose(native, "user" if native["sender"] == "human" else native["sender"])
    beside = tuple(_beside(native, said.content))
    said = extended(said, beside, (part.text for part in beside))
    return Message(
        message_id=native_id(native.get("uuid")),
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=recorded_instant(native, ("created_at", "updated_at")),
        parts=said.parts,
        envelope=said.envelope,
    )


def _beside(native: dict[str, Any], words: str) -> Iterator[Part]:
    """What is said beside the blocks: the `text` of an export that has none, what was read of attachments, files."""
    if not words and isinstance(native.get("text"), str):
        yield value_part("text", native["text"])
    for slot in ("attachments", "files"):
        held = native.get(slot)
        for file in held if isinstance(held, list) else []:
            read = text_in(file, "extracted_content") if isinstance(file, dict) else None
            yield Part("file", read, metadata={"slot": slot, "raw": file})


def _is_conversation(value: object) -> bool:
    messages = value.get(_MESSAGES) if isinstance(value, dict) else None
    return isinstance(messages, list) and all(isinstance(said, dict) and "sender" in said for said in messages[:1])
