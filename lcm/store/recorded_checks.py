"""Whether messages still are what was recorded."""

import sqlite3
from collections.abc import Iterator, Sequence

from lcm.errors import LcmError
from lcm.records.conversation import Message, Part
from lcm.store.messages import messages_by_key
from lcm.store.parts_texts import parts_texts
from lcm.transcript.large_files import compacted
from lcm.transcript.parts import DecomposedMessage, decompose, read_whole, rebuild

_BATCH = 500
_OWN_SLOTS = {"content", "tool_calls"}
_OWN_SOURCES = {"bash-exec", "unknown-message-shape"}

# A damaged envelope may be JSON of any shape.
_UNREADABLE = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError, LcmError)


def unlike_originals(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Take the recorded message apart anew, and compare role, words and parts.

    Judged are messages whose words are those of the recorded `content`. Those of formats with a reading of their own
    (Gemini, ShareGPT, single items of Codex, steps of SWE-agent) need only give a recorded message; one without a
    recorded original need only be readable.
    """
    keys = connection.execute(
        "SELECT message_key FROM messages WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY conversation_id, seq",
        (conversation,),
    )
    while rows := keys.fetchmany(_BATCH):
        for key, message in _read(connection, [key for (key,) in rows]):
            if problem := message if isinstance(message, str) else _problem(message):
                yield f"message {key} {problem}"


def unsearchable_parts(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Messages whose parts say something that is not kept for searching, or where something else is."""
    kept = dict(
        connection.execute(
            "SELECT message_id, parts_text FROM messages WHERE ?1 IS NULL OR conversation_id = ?1", (conversation,)
        )
    )
    for number, text in parts_texts(connection, conversation):
        if kept[number] != text:
            yield f"msg#{number}: its parts say {'other' if kept[number] else 'more'} than is searched"


def _read(connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[tuple[str, Message | str]]:
    """Messages, or why one cannot be read."""
    try:
        yield from messages_by_key(connection, keys).items()
    except _UNREADABLE as error:
        if len(keys) == 1:
            yield keys[0], f"cannot be read: {error}"
            return
        for key in keys:
            yield from _read(connection, [key])


def _problem(message: Message) -> str:
    if "native" not in message.envelope:
        return ""
    try:
        rebuild(message)
        if not _is_plain(message):
            return ""
        native = read_whole(message)
        has_role = isinstance(native.get("role"), str)
        said = decompose(native, None if has_role else message.role)
        content = compacted(message).content if message.files else said.content
    except _UNREADABLE as error:
        return f"does not give its recorded original: {type(error).__name__}: {error}"
    wrong = [
        *(["role"] if has_role and said.role != message.role else []),
        *(["content"] if content != message.content else []),
        *(["parts"] if _has_other_parts(message, said) else []),
    ]
    return f"has another {' and '.join(wrong)} than its recorded original" if wrong else ""


def _is_plain(message: Message) -> bool:
    """Whether `decompose` made it."""
    slots = set(message.envelope["slots"])
    return slots <= _OWN_SLOTS if slots else any(p.metadata.get("source") in _OWN_SOURCES for p in message.parts)


def _has_other_parts(message: Message, said: DecomposedMessage) -> bool:
    slots = message.envelope["slots"]
    if any("slot" in part.metadata and part.metadata["slot"] not in slots for part in message.parts):
        return False  # calls that were recorded as JSON text: their parts follow from no slot
    return len(said.parts) != len(message.parts) or not all(map(_is_same, message.parts, said.parts))


def _is_same(stored: Part, said: Part) -> bool:
    if said.tool_call_id is not None and stored.tool_call_id != said.tool_call_id:
        return False  # a reader may know the call from elsewhere where the block does not name it
    return (stored.part_type, stored.text, stored.tool_name, stored.tool_input, stored.tool_output) == (
        said.part_type, said.text, said.tool_name, said.tool_input, said.tool_output
    )  # fmt: skip
