"""Messages and their parts as rows, and the law that a stored transcript only ever grows."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from lcm.encoding import mapping_json, optional_text, require_id, well_formed
from lcm.errors import StoreError
from lcm.instants import EPOCH, format_instant, parse_instant
from lcm.protocols import TokenEstimator
from lcm.records import Message, Part, Transcript

ORDINAL_STEP = 1024
"""Between neighbouring context items: room to replace a run without renumbering what follows."""


class PartRow(NamedTuple):
    """A part as it stands in `message_parts`."""

    part_type: str
    text_content: str | None
    tool_call_id: str | None
    tool_name: str | None
    tool_input: str | None
    tool_output: str | None
    metadata: str


class MessageRow(NamedTuple):
    """A message as it stands in `messages`, with its parts."""

    message_key: str
    session_id: str
    role: str
    author: str | None
    content: str
    envelope: str
    created_at: str
    parts: tuple[PartRow, ...]


def add_messages(connection: sqlite3.Connection, transcript: Transcript, tokens: TokenEstimator) -> int:
    """Append what the stored conversation lacks, inside the caller's transaction; see `Store.ingest`."""
    conversation_key = require_id(transcript.conversation_id, "conversation id")
    rows = list(_encode_messages(transcript.messages))
    found = connection.execute(
        "SELECT conversation_id FROM conversations WHERE session_key = ? AND active = 1", (conversation_key,)
    ).fetchone()
    stored = list(_read_rows(connection, found[0])) if found else []
    _require_prefix(stored, rows, conversation_key)
    new = rows[len(stored) :]
    if not new:
        return 0
    conversation: int = found[0] if found else _add_conversation(connection, transcript, new)
    try:
        _insert(connection, conversation, len(stored), new, tokens.count([row.content for row in new]))
    except sqlite3.IntegrityError as err:
        raise StoreError(_refusal(connection, conversation, conversation_key, rows, err)) from err
    if stored:
        connection.execute(
            """
            UPDATE conversations SET session_id = ?, updated_at = ?, title = coalesce(?, title)
            WHERE conversation_id = ?
            """,
            (new[-1].session_id, new[-1].created_at, optional_text(transcript.title), conversation),
        )
    return len(new)


def read_messages(connection: sqlite3.Connection, conversation_key: str | None) -> list[Message]:
    """Read records back, conversations in the order of their first ingest, messages by seq."""
    conversations = connection.execute(
        """
        SELECT conversation_id FROM conversations
        WHERE ?1 IS NULL OR session_key = ?1 ORDER BY conversation_id
        """,
        (conversation_key,),
    ).fetchall()
    return [_decode_message(row) for (key,) in conversations for row in _read_rows(connection, key)]


def _encode_messages(messages: Iterable[Message]) -> Iterator[MessageRow]:
    known = EPOCH
    for message in messages:
        known = message.created_at or known
        yield _encode_message(message, known)


def _encode_message(message: Message, created_at: datetime) -> MessageRow:
    return MessageRow(
        require_id(message.message_id, "message id"),
        require_id(message.session_id, "session id"),
        message.role,
        optional_text(message.author),
        well_formed(message.content),
        mapping_json(message.envelope),
        format_instant(created_at),
        tuple(map(_encode_part, message.parts)),
    )


def _encode_part(part: Part) -> PartRow:
    return PartRow(
        part.part_type,
        optional_text(part.text),
        optional_text(part.tool_call_id),
        optional_text(part.tool_name),
        optional_text(part.tool_input),
        optional_text(part.tool_output),
        mapping_json(part.metadata),
    )


def _decode_message(row: MessageRow) -> Message:
    return Message(
        message_id=row.message_key,
        role=row.role,  # type: ignore[arg-type]  # the table's CHECK
        content=row.content,
        session_id=row.session_id,
        created_at=parse_instant(row.created_at),
        author=row.author,
        parts=tuple(map(_decode_part, row.parts)),
        envelope=json.loads(row.envelope),
    )


def _decode_part(row: PartRow) -> Part:
    return Part(
        part_type=row.part_type,  # type: ignore[arg-type]  # the table's CHECK
        text=row.text_content,
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name,
        tool_input=row.tool_input,
        tool_output=row.tool_output,
        metadata=json.loads(row.metadata),
    )


def _read_rows(connection: sqlite3.Connection, conversation: int) -> Iterator[MessageRow]:
    part_rows = connection.execute(
        """
        SELECT m.seq, p.part_type, p.text_content, p.tool_call_id, p.tool_name, p.tool_input, p.tool_output,
               coalesce(p.metadata, '{}')
        FROM messages m JOIN message_parts p USING (message_id)
        WHERE m.conversation_id = ? ORDER BY m.seq, p.ordinal
        """,
        (conversation,),
    )
    parts = {seq: tuple(PartRow(*row[1:]) for row in rows) for seq, rows in groupby(part_rows, itemgetter(0))}
    message_rows = connection.execute(
        """
        SELECT seq, message_key, session_id, role, author, content, envelope, created_at
        FROM messages WHERE conversation_id = ? ORDER BY seq
        """,
        (conversation,),
    )
    for seq, *columns in message_rows:
        yield MessageRow._make((*columns, parts.get(seq, ())))


def _require_prefix(stored: Sequence[MessageRow], rows: Sequence[MessageRow], conversation_key: str) -> None:
    """Refuse a transcript in which a stored message is missing or is not what it was."""
    at = next((i for i, pair in enumerate(zip(stored, rows, strict=False)) if pair[0] != pair[1]), len(rows))
    if at >= len(stored):
        return
    problem = f"conversation {conversation_key!r}: message {at + 1} is stored as {stored[at].message_key!r}"
    if at == len(rows):
        problem += ", where the transcript has ended"
    elif stored[at].message_key != rows[at].message_key:
        problem += f", but the transcript has {rows[at].message_key!r} there"
    else:
        fields = zip(MessageRow._fields, stored[at], rows[at], strict=True)
        changed = ", ".join(name for name, old, new in fields if old != new)
        problem += f", but the transcript has another {changed}"
    raise StoreError(f"{problem}; a transcript may only grow: give the other one its own conversation id")


def _add_conversation(connection: sqlite3.Connection, transcript: Transcript, rows: Sequence[MessageRow]) -> int:
    cursor = connection.execute(
        """
        INSERT INTO conversations (session_id, session_key, title, created_at, updated_at)
        VALUES (?, ?, ?, ?, ?)
        """,
        (
            rows[-1].session_id,
            transcript.conversation_id,
            optional_text(transcript.title),
            rows[0].created_at,
            rows[-1].created_at,
        ),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _insert(
    connection: sqlite3.Connection,
    conversation: int,
    stored: int,
    rows: Sequence[MessageRow],
    token_counts: Sequence[int],
) -> None:
    # Row ids are dealt out here, so that parts and context items need no look-up; the write lock is ours.
    newest = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
    first = newest[0] + 1 if newest else 1
    connection.executemany(
        """
        INSERT INTO messages (message_id, conversation_id, seq, token_count,
                              message_key, session_id, role, author, content, envelope, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            (first + i, conversation, stored + i + 1, count, *row[:-1])
            for i, (row, count) in enumerate(zip(rows, token_counts, strict=True))
        ),
    )
    connection.executemany(
        """
        INSERT INTO message_parts (part_id, message_id, session_id, ordinal, part_type, text_content,
                                   tool_call_id, tool_name, tool_input, tool_output, metadata)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            (f"{row.message_key}:{ordinal}", first + i, row.session_id, ordinal, *part)
            for i, row in enumerate(rows)
            for ordinal, part in enumerate(row.parts)
        ),
    )
    (last_ordinal,) = connection.execute(
        "SELECT coalesce(max(ordinal), 0) FROM context_items WHERE conversation_id = ?", (conversation,)
    ).fetchone()
    connection.executemany(
        """
        INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, created_at)
        VALUES (?, ?, 'message', ?, ?)
        """,
        (
            (conversation, last_ordinal + (i + 1) * ORDINAL_STEP, first + i, row.created_at)
            for i, row in enumerate(rows)
        ),
    )


def _refusal(
    connection: sqlite3.Connection,
    conversation: int,
    conversation_key: str,
    rows: Sequence[MessageRow],
    err: sqlite3.IntegrityError,
) -> str:
    """Say which message of the transcript broke which constraint."""
    seen: set[str] = set()
    for position, row in enumerate(rows, start=1):
        named = f"conversation {conversation_key!r}: message {position} has the id {row.message_key!r}"
        if row.message_key in seen:
            return f"{named}, as an earlier one has; ids are unique within a workspace"
        seen.add(row.message_key)
        holder = connection.execute(
            """
            SELECT c.session_key FROM messages m JOIN conversations c USING (conversation_id)
            WHERE m.message_key = ? AND m.conversation_id <> ?
            """,
            (row.message_key, conversation),
        ).fetchone()
        if holder:
            return f"{named}, which belongs to conversation {holder[0]!r}; ids are unique within a workspace"
    return f"conversation {conversation_key!r}: {err}"
