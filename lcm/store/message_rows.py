"""A message as rows: in `messages`, with its parts and large files, and at the end of its conversation's context."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from lcm.clock import format_instant, parse_instant
from lcm.encoding import mapping_json, optional_text, require_id, well_formed
from lcm.records.conversation import LargeFile, Message, Part

ORDINAL_STEP = 1024
"""Between neighbouring context items: room to replace a run without renumbering what follows."""

_NO_END = 2**62
_SHARED = 200
"""Characters: most envelopes and metadata are short and few, and are decoded once for all messages."""
_ROWS_AT_ONCE = 256
_ROWS_A_STATEMENT = 80
"""Of messages: older builds of SQLite take 999 values at most."""


class PartRow(NamedTuple):
    """A part as it stands in `message_parts`."""

    part_type: str
    text_content: str | None
    tool_call_id: str | None
    tool_name: str | None
    tool_input: str | None
    tool_output: str | None
    metadata: str


class FileRow(NamedTuple):
    """A large file as it stands in `large_files`."""

    file_id: str
    ordinal: int
    position: int
    file_name: str | None
    mime_type: str | None
    byte_size: int
    exploration_summary: str


class MessageRow(NamedTuple):
    """A message as it stands in `messages`, with its parts."""

    message_key: str
    session_id: str
    role: str
    author: str | None
    content: str
    envelope: str
    created_at: str
    files: tuple[FileRow, ...]
    parts: tuple[PartRow, ...]


def encode_messages(messages: Iterable[Message], known: datetime) -> Iterator[MessageRow]:
    """Messages as rows; one without an instant takes that of the one before it, the first `known`."""
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
        tuple(map(_encode_file, message.files)),
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


def _encode_file(file: LargeFile) -> FileRow:
    return FileRow(
        file.file_id,
        file.ordinal,
        file.position,
        optional_text(file.name),
        optional_text(file.mime_type),
        file.byte_size,
        well_formed(file.exploration_summary),
    )


@lru_cache(4096)
def _shared_json(text: str) -> Any:
    """Decoded JSON, the same object for all who ask: nobody changes a record."""
    return json.loads(text)


def decode_message(row: MessageRow) -> Message:
    return Message(
        message_id=row.message_key,
        role=row.role,  # type: ignore[arg-type]  # the table's CHECK
        content=row.content,
        session_id=row.session_id,
        created_at=parse_instant(row.created_at),
        author=row.author,
        parts=tuple(map(_decode_part, row.parts)),
        envelope=_shared_json(row.envelope) if len(row.envelope) <= _SHARED else json.loads(row.envelope),
        files=tuple(LargeFile(*file) for file in row.files),
    )


def _decode_part(row: PartRow) -> Part:
    metadata = row.metadata
    return Part(
        row.part_type,  # type: ignore[arg-type]  # the table's CHECK
        row.text_content,
        row.tool_call_id,
        row.tool_name,
        row.tool_input,
        row.tool_output,
        _shared_json(metadata) if len(metadata) <= _SHARED else json.loads(metadata),
    )


def read_rows(
    connection: sqlite3.Connection, conversation: int, first: int = 1, last: int = _NO_END
) -> Iterator[MessageRow]:
    """Read messages first to last, by seq."""
    part_rows = connection.execute(
        """
        SELECT m.seq, p.part_type, p.text_content, p.tool_call_id, p.tool_name, p.tool_input, p.tool_output,
               coalesce(p.metadata, '{}')
        FROM messages m JOIN message_parts p USING (message_id)
        WHERE m.conversation_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq, p.ordinal
        """,
        (conversation, first, last),
    )
    parts: dict[int, list[PartRow]] = {}
    for seq, *columns in part_rows.fetchall():
        parts.setdefault(seq, []).append(PartRow._make(columns))
    file_rows = connection.execute(
        """
        SELECT m.seq, f.file_id, f.ordinal, f.position, f.file_name, f.mime_type, f.byte_size, f.exploration_summary
        FROM large_files f JOIN messages m USING (message_id)
        WHERE f.conversation_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq, f.ordinal, f.position
        """,
        (conversation, first, last),
    )
    files: dict[int, list[FileRow]] = {}
    for seq, *columns in file_rows.fetchall():
        files.setdefault(seq, []).append(FileRow._make(columns))
    message_rows = connection.execute(
        """
        SELECT seq, message_key, session_id, role, author, content, envelope, created_at
        FROM messages WHERE conversation_id = ? AND seq BETWEEN ? AND ? ORDER BY seq
        """,
        (conversation, first, last),
    )
    while some := message_rows.fetchmany(_ROWS_AT_ONCE):
        for seq, *columns in some:
            yield MessageRow._make((*columns, tuple(files.get(seq, ())), tuple(parts.get(seq, ()))))


def insert_rows(
    connection: sqlite3.Connection,
    conversation: int,
    first_seq: int,
    rows: Sequence[MessageRow],
    token_counts: Sequence[int],
    parts_texts: Sequence[str],
) -> None:
    """Put messages behind those of a conversation and of its context, inside the caller's transaction.

    Args:
        connection: where.
        conversation: its integer key.
        first_seq: of the first message.
        rows: the messages.
        token_counts: of each.
        parts_texts: what the parts of each say besides its words.
    """
    # Row ids are dealt out here, so that parts and context items need no look-up; the write lock is ours.
    newest = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
    first = newest[0] + 1 if newest else 1
    values = [
        (first + i, conversation, first_seq + i, count, text, *row[:-2])
        for i, (row, count, text) in enumerate(zip(rows, token_counts, parts_texts, strict=True))
    ]
    # Many rows a statement: at the end of each one the full-text table, which follows by trigger, writes out its index.
    for start in range(0, len(values), _ROWS_A_STATEMENT):
        some = values[start : start + _ROWS_A_STATEMENT]
        places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
        connection.execute(
            f"""
            INSERT INTO messages (message_id, conversation_id, seq, token_count, parts_text,
                                  message_key, session_id, role, author, content, envelope, created_at)
            VALUES {places}
            """,  # noqa: S608 (our own constants)
            [*chain.from_iterable(some)],
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
    connection.executemany(
        """
        INSERT INTO large_files (file_id, conversation_id, message_id, ordinal, position, file_name, mime_type,
                                 byte_size, exploration_summary, storage_uri, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            (
                *(file.file_id, conversation, first + i, file.ordinal, file.position, file.file_name, file.mime_type),
                *(file.byte_size, file.exploration_summary, f"part:{row.message_key}:{file.ordinal}", row.created_at),
            )
            for i, row in enumerate(rows)
            for file in row.files
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
