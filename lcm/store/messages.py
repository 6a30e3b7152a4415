"""Messages and their parts as rows, and the law that a stored transcript only ever grows."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from lcm.clock import EPOCH, format_instant, parse_instant
from lcm.encoding import mapping_json, optional_text, require_id, to_json, well_formed
from lcm.errors import StoreError
from lcm.protocols import TokenEstimator
from lcm.records import Event, LargeFile, Message, Part, Transcript

ORDINAL_STEP = 1024
"""Between neighbouring context items: room to replace a run without renumbering what follows."""

_NO_END = 2**62
_BATCH = 500


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


@dataclass(slots=True)
class _Hearing:
    """How far a conversation has been heard in this call."""

    conversation: int
    stored: int
    """Messages that were there before."""
    messages: int = 0
    events: int = 0
    known_at: datetime = EPOCH
    """The latest instant that was named, carried forward to messages without one."""


Wording = Callable[[Message], str]
"""The text whose tokens a message is counted by."""


def add_pieces(
    connection: sqlite3.Connection, pieces: Iterable[Transcript], tokens: TokenEstimator, wording: Wording
) -> int:
    """Append what the stored conversations lack, inside the caller's transaction; see `Store.ingest_pieces`."""
    hearings: dict[str, _Hearing] = {}
    added = 0
    for piece in pieces:
        key = require_id(piece.conversation_id, "conversation id")
        hearing = hearings.get(key) or _begin(connection, piece, key)
        if hearing is None:
            continue
        hearings[key] = hearing
        rows = list(_encode_messages(piece.messages, hearing.known_at))
        _require_stored(connection, hearing, rows, key)
        new = rows[max(0, hearing.stored - hearing.messages) :]
        if new:
            counts = tokens.count([wording(message) for message in piece.messages[-len(new) :]])
            first_seq = hearing.messages + len(rows) - len(new) + 1
            try:
                _insert(connection, hearing.conversation, first_seq, new, counts)
            except sqlite3.IntegrityError as err:
                raise StoreError(_refusal(connection, hearing.conversation, key, first_seq, new, err)) from err
            _touch(connection, hearing.conversation, new, is_first=first_seq == 1)
            added += len(new)
        if piece.title is not None:
            connection.execute(
                "UPDATE conversations SET title = ? WHERE conversation_id = ?",
                (well_formed(piece.title), hearing.conversation),
            )
        _insert_events(connection, hearing, piece.events)
        hearing.messages += len(rows)
        hearing.known_at = parse_instant(rows[-1].created_at) if rows else hearing.known_at
    for key, hearing in hearings.items():
        if hearing.messages < hearing.stored:
            missing = next(_read_rows(connection, hearing.conversation, hearing.messages + 1))
            raise StoreError(_changed(key, hearing.messages, missing, None))
    return added


def append(
    connection: sqlite3.Connection,
    conversation_key: str,
    messages: Sequence[Message],
    tokens: TokenEstimator,
    wording: Wording,
) -> None:
    """Put messages behind those of a conversation, which is made if need be, inside the caller's transaction."""
    key = require_id(conversation_key, "conversation id")
    if not messages:
        return
    found = connection.execute(
        "SELECT conversation_id FROM conversations WHERE session_key = ? AND active = 1", (key,)
    ).fetchone()
    hearing = _Hearing(found[0], 0) if found else _begin(connection, Transcript(key, tuple(messages)), key)
    assert hearing is not None
    last = connection.execute(
        "SELECT seq, created_at FROM messages WHERE conversation_id = ? ORDER BY seq DESC LIMIT 1",
        (hearing.conversation,),
    ).fetchone()
    seq, known_at = (last[0], parse_instant(last[1])) if last else (0, EPOCH)
    rows = list(_encode_messages(messages, known_at))
    counts = tokens.count([wording(message) for message in messages])
    try:
        _insert(connection, hearing.conversation, seq + 1, rows, counts)
    except sqlite3.IntegrityError as err:
        raise StoreError(_refusal(connection, hearing.conversation, key, seq + 1, rows, err)) from err
    _touch(connection, hearing.conversation, rows, is_first=seq == 0)


def _begin(connection: sqlite3.Connection, piece: Transcript, key: str) -> _Hearing | None:
    """Find the conversation or make it, unless there is nothing to put in; its events are heard anew."""
    found = connection.execute(
        """
        SELECT c.conversation_id, (SELECT coalesce(max(seq), 0) FROM messages WHERE conversation_id = c.conversation_id)
        FROM conversations c WHERE c.session_key = ? AND c.active = 1
        """,
        (key,),
    ).fetchone()
    if found:
        connection.execute("DELETE FROM conversation_events WHERE conversation_id = ?", (found[0],))
        return _Hearing(*found)
    if not piece.messages and not piece.events:
        return None
    at = format_instant(EPOCH)  # until the first message is there
    cursor = connection.execute(
        "INSERT INTO conversations (session_id, session_key, created_at, updated_at) VALUES (?, ?, ?, ?)",
        (key, key, at, at),
    )
    assert cursor.lastrowid is not None
    return _Hearing(cursor.lastrowid, 0)


def _touch(connection: sqlite3.Connection, conversation: int, new: Sequence[MessageRow], *, is_first: bool) -> None:
    """Bring the conversation's own row up to its newest message."""
    connection.execute(
        """
        UPDATE conversations SET session_id = ?1, updated_at = ?2,
                                 created_at = CASE WHEN ?3 THEN ?4 ELSE created_at END
        WHERE conversation_id = ?5
        """,
        (new[-1].session_id, new[-1].created_at, is_first, new[0].created_at, conversation),
    )


def _insert_events(connection: sqlite3.Connection, hearing: _Hearing, events: Sequence[Event]) -> None:
    connection.executemany(
        "INSERT INTO conversation_events (conversation_id, ordinal, after_seq, kind, native) VALUES (?, ?, ?, ?, ?)",
        (
            (hearing.conversation, hearing.events + i, event.after, well_formed(event.kind), to_json(event.native))
            for i, event in enumerate(events, start=1)
        ),
    )
    hearing.events += len(events)


def read_events(connection: sqlite3.Connection, conversation_key: str) -> list[Event]:
    """Read what was recorded beside the messages, in order."""
    rows = connection.execute(
        """
        SELECT e.kind, e.native, e.after_seq FROM conversation_events e JOIN conversations c USING (conversation_id)
        WHERE c.session_key = ? ORDER BY e.ordinal
        """,
        (conversation_key,),
    )
    return [Event(kind, json.loads(native), after) for kind, native, after in rows]


def read_messages(connection: sqlite3.Connection, conversation_key: str | None, first_seq: int = 1) -> list[Message]:
    """Read records back, conversations in the order of their first ingest, messages by seq."""
    conversations = connection.execute(
        """
        SELECT conversation_id FROM conversations
        WHERE ?1 IS NULL OR session_key = ?1 ORDER BY conversation_id
        """,
        (conversation_key,),
    ).fetchall()
    return [_decode_message(row) for (key,) in conversations for row in _read_rows(connection, key, first_seq)]


def messages_by_key(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, Message]:
    """Read messages whole by their ids; an unknown id is left out."""
    found: dict[str, Message] = {}
    for start in range(0, len(keys), _BATCH):
        some = keys[start : start + _BATCH]
        runs = connection.execute(
            f"""
            SELECT conversation_id, group_concat(seq) FROM messages
            WHERE message_key IN ({", ".join("?" * len(some))}) GROUP BY conversation_id
            """,  # noqa: S608 (our own constants)
            some,
        ).fetchall()
        for conversation, seqs in runs:
            for first, last in _runs(sorted(map(int, seqs.split(",")))):
                for row in _read_rows(connection, conversation, first, last):
                    found[row.message_key] = _decode_message(row)
    return found


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of each stretch without gaps."""
    start = 0
    for i, number in enumerate(numbers):
        if i + 1 == len(numbers) or numbers[i + 1] != number + 1:
            yield numbers[start], number
            start = i + 1


def _encode_messages(messages: Iterable[Message], known: datetime) -> Iterator[MessageRow]:
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
        files=tuple(LargeFile(*file) for file in row.files),
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


def _read_rows(
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
    parts = {seq: tuple(PartRow(*row[1:]) for row in rows) for seq, rows in groupby(part_rows, itemgetter(0))}
    file_rows = connection.execute(
        """
        SELECT m.seq, f.file_id, f.ordinal, f.position, f.file_name, f.mime_type, f.byte_size, f.exploration_summary
        FROM large_files f JOIN messages m USING (message_id)
        WHERE f.conversation_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq, f.ordinal, f.position
        """,
        (conversation, first, last),
    )
    files = {seq: tuple(FileRow(*row[1:]) for row in rows) for seq, rows in groupby(file_rows, itemgetter(0))}
    message_rows = connection.execute(
        """
        SELECT seq, message_key, session_id, role, author, content, envelope, created_at
        FROM messages WHERE conversation_id = ? AND seq BETWEEN ? AND ? ORDER BY seq
        """,
        (conversation, first, last),
    )
    for seq, *columns in message_rows:
        yield MessageRow._make((*columns, files.get(seq, ()), parts.get(seq, ())))


def _require_stored(connection: sqlite3.Connection, hearing: _Hearing, rows: Sequence[MessageRow], key: str) -> None:
    """Refuse a piece in which a stored message is not what it was."""
    before = hearing.messages
    last = min(before + len(rows), hearing.stored)
    if last <= before:
        return
    stored = _read_rows(connection, hearing.conversation, before + 1, last)
    for seq, (old, new) in enumerate(zip(stored, rows, strict=False), start=before):
        if old != new:
            raise StoreError(_changed(key, seq, old, new))


def _changed(key: str, before: int, old: MessageRow, new: MessageRow | None) -> str:
    problem = f"conversation {key!r}: message {before + 1} is stored as {old.message_key!r}"
    if new is None:
        problem += ", where the transcript has ended"
    elif old.message_key != new.message_key:
        problem += f", but the transcript has {new.message_key!r} there"
    else:
        fields = zip(MessageRow._fields, old, new, strict=True)
        changed = ", ".join(name for name, was, is_now in fields if was != is_now)
        problem += f", but the transcript has another {changed}"
    return f"{problem}; a transcript may only grow: give the other one its own conversation id"


def _insert(
    connection: sqlite3.Connection,
    conversation: int,
    first_seq: int,
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
            (first + i, conversation, first_seq + i, count, *row[:-2])
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


def _refusal(
    connection: sqlite3.Connection,
    conversation: int,
    conversation_key: str,
    first_seq: int,
    rows: Sequence[MessageRow],
    err: sqlite3.IntegrityError,
) -> str:
    """Say which message of the transcript broke which constraint."""
    seen: set[str] = set()
    for position, row in enumerate(rows, start=first_seq):
        named = f"conversation {conversation_key!r}: message {position} has the id {row.message_key!r}"
        holder = connection.execute(
            """
            SELECT c.conversation_id, c.session_key FROM messages m JOIN conversations c USING (conversation_id)
            WHERE m.message_key = ? AND (m.conversation_id <> ? OR m.seq < ?)
            """,
            (row.message_key, conversation, first_seq),
        ).fetchone()
        if row.message_key in seen or (holder and holder[0] == conversation):
            return f"{named}, as an earlier one has; ids are unique within a workspace"
        if holder:
            return f"{named}, which belongs to conversation {holder[1]!r}; ids are unique within a workspace"
        seen.add(row.message_key)
    return f"conversation {conversation_key!r}: {err}"
