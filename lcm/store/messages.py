"""Messages as rows, with their parts and large files, and the law that a stored transcript only ever grows."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from lcm.clock import EPOCH, format_instant, parse_instant
from lcm.encoding import mapping_json, optional_text, require_id, to_json, well_formed
from lcm.errors import StoreError
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import LargeFile, Message, Part, Transcript
from lcm.store.conversations import (
    active_conversation,
    add_events,
    end_events,
    last_message,
    make_conversation,
    set_events_aside,
    set_title,
)
from lcm.store.sqlite import LISTED, column, insertion, listed, value
from lcm.transcript.message_tokens import Rendering, message_tokens, without_images
from lcm.transcript.passages import parts_text

ORDINAL_STEP = 1024
"""Between neighbouring context items: room to replace a run without renumbering what follows."""

_SHARED = 200
"""Characters: most envelopes and metadata are short and few, and are decoded once for all messages."""
_NO_END = 2**62
_ROWS_AT_ONCE = 256
_ROWS_A_STATEMENT = 80
"""Of messages: older builds of SQLite take 999 values at most."""
_said: Rendering = attrgetter("content")
_PART = attrgetter(*(field.name for field in fields(Part)))


class MessageRow(NamedTuple):
    """A message as it stands in `messages`, with its parts and large files."""

    message_key: str
    session_id: str
    role: str
    author: str | None
    content: str
    envelope: str
    created_at: str
    files: tuple[tuple[Any, ...], ...]
    """Each in the columns of `large_files` that the fields of a `LargeFile` are."""
    parts: tuple[tuple[Any, ...], ...]
    """Each in the columns of `message_parts` that the fields of a `Part` are."""


class SourceMessage(NamedTuple):
    """A message as recall reads it."""

    number: int
    message_id: str
    conversation: int
    role: str
    text: str
    """Its words, and what its parts say besides."""
    tokens: int
    """Of the text, as counted when it was stored; 0 where its parts say more than was counted."""
    created_at: datetime


class StoredFile(NamedTuple):
    """A large file, and the message that holds its words."""

    file: LargeFile
    conversation: int
    message: int | None
    """The integer key of the message."""
    message_id: str | None
    created_at: datetime


_OWN_COLUMNS = MessageRow._fields[:-2]
_PART_COLUMNS = (
    "part_type", "text_content", "tool_call_id", "tool_name", "tool_input", "tool_output", "metadata",
)  # fmt: skip
_FILE_COLUMNS = (
    "file_id", "ordinal", "position", "file_name", "mime_type", "byte_size", "exploration_summary",
)  # fmt: skip
_PARTS = f"""
    SELECT message_id, {", ".join(_PART_COLUMNS[:-1])}, coalesce(metadata, '{{}}') FROM message_parts
    WHERE message_id {LISTED} ORDER BY message_id, ordinal
"""  # noqa: S608 (our own constants)
_FILES = f"""
    SELECT message_id, {", ".join(_FILE_COLUMNS)} FROM large_files JOIN messages USING (message_id, conversation_id)
    WHERE message_id {LISTED} ORDER BY message_id, ordinal, position
"""  # noqa: S608 (our own constants)


@dataclass(slots=True)
class _Growing:
    """A conversation that pieces of a transcript are held against, as far as they have come."""

    conversation: int
    stored: int
    """Messages that were there before."""
    messages: int = 0
    events: int = 0
    known_at: datetime = EPOCH
    """The latest instant that was named, carried forward to messages without one."""
    title: str | None = None
    refusal: str | None = None
    """Why it is not what is stored: no more of it is held against that."""


def add_transcript(
    connection: sqlite3.Connection, transcript: Transcript, tokens: TokenEstimator, rendered: Rendering = _said
) -> int:
    """Store a transcript, or what is new in a longer version of one that is stored.

    Laws: the same transcript twice changes nothing; `Store.messages` gives the records back, missing instants
    filled in by the last known one (1970 if there is none), half surrogate pairs in text replaced by
    U+FFFD; `envelope` and part metadata come back exactly. Events, and the title where there is one, are those
    of the newest version: sessions are renamed, and some formats rewrite their header.

    Args:
        transcript: from its beginning.
        tokens: counts the tokens of messages.
        rendered: the text whose tokens a message is counted by: what an assembly makes of it.
    Returns:
        How many messages were added.

    Raises:
        StoreError: if a stored message is missing or changed in the transcript, or a message id is taken;
            nothing is written.
    """
    return add_pieces(connection, [transcript], tokens, rendered)


def add_pieces(
    connection: sqlite3.Connection,
    pieces: Iterable[Transcript],
    tokens: TokenEstimator,
    rendered: Rendering = _said,
    refused: dict[str, str] | None = None,
) -> int:
    """`Store.ingest` of transcripts that come in pieces, never all in memory, as one transaction.

    Each piece continues its conversation where the piece before it ended; those of several conversations may
    alternate.

    Args:
        refused: takes the conversations of which a stored message is missing or changed, with the reasons; they
            stay as they are, and all others are taken in. None = then nothing is.
    """
    all_growing: dict[str, _Growing] = {}
    added = 0
    for piece in pieces:
        key = require_id(piece.conversation_id, "conversation id")
        growing = all_growing.get(key) or _begin(connection, piece, key)
        if growing is None:
            continue
        all_growing[key] = growing
        if growing.refusal is not None:
            continue
        rows = list(_encode_messages(piece.messages, growing.known_at))
        growing.refusal = _difference(connection, growing, rows, key)
        if growing.refusal is not None:
            if refused is None:
                raise StoreError(growing.refusal)
            continue
        if new := rows[max(0, growing.stored - growing.messages) :]:
            said = piece.messages[-len(new) :]
            first_seq = growing.messages + len(rows) - len(new) + 1
            counts = message_tokens(said, rendered, tokens, piece.events, first_seq - 1)
            _insert(connection, growing.conversation, key, first_seq, new, counts, said)
            added += len(new)
        growing.title = growing.title if piece.title is None else piece.title
        add_events(connection, growing.conversation, growing.events, piece.events)
        growing.events += len(piece.events)
        growing.messages += len(rows)
        growing.known_at = parse_instant(rows[-1].created_at) if rows else growing.known_at
    for key, growing in all_growing.items():
        if growing.refusal is None and growing.messages < growing.stored:
            missing = next(_read_seqs(connection, growing.conversation, growing.messages + 1))
            growing.refusal = _changed(key, growing.messages, missing, None)
        end_events(connection, growing.conversation, is_refused=growing.refusal is not None)
        if growing.refusal is None:
            set_title(connection, growing.conversation, growing.title)
        elif refused is None:
            raise StoreError(growing.refusal)
        else:
            refused[key] = growing.refusal
    return added


def append(
    connection: sqlite3.Connection,
    conversation_id: str,
    messages: Sequence[Message],
    tokens: TokenEstimator,
    rendered: Rendering = _said,
) -> None:
    """Put messages behind those of a conversation, which is made if need be: what a live session says.

    Raises:
        StoreError: if a message id is taken; nothing is written.
    """
    key = require_id(conversation_id, "conversation id")
    if not messages:
        return
    conversation = active_conversation(connection, key)
    if conversation is None:
        conversation = make_conversation(connection, key)
    last = last_message(connection, conversation)
    rows = list(_encode_messages(messages, last.created_at if last else EPOCH))
    counts = message_tokens(messages, rendered, tokens)
    _insert(connection, conversation, key, last.seq + 1 if last else 1, rows, counts, messages)


def read_messages(
    connection: sqlite3.Connection, conversation_id: str | None = None, first_seq: int = 1
) -> list[Message]:
    """Read the records of one conversation, or of all in the order of their first ingest; from `first_seq` on."""
    of = "SELECT conversation_id FROM conversations WHERE ?1 IS NULL OR session_key = ?1"
    chosen = f"conversation_id IN ({of}) AND seq >= ?2"
    return [*map(decode_message, read_rows(connection, chosen, conversation_id, first_seq))]


def messages_by_key(connection: sqlite3.Connection, message_ids: Collection[str]) -> dict[str, Message]:
    """Read records by id; an unknown one is left out."""
    parts = (read_rows(connection, f"message_key {among}", *some) for among, some in listed(list(message_ids)))
    return {row.message_key: decode_message(row) for row in chain.from_iterable(parts)}


def source_messages(connection: sqlite3.Connection, summary_id: str) -> list[SourceMessage]:
    """The messages that a leaf summary stands for, in order."""
    of = "summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = ? ORDER BY l.ordinal"
    return _source_messages(connection, of, summary_id)


def messages_by_number(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[SourceMessage]:
    """Messages by their integer keys, in that order; an unknown one is left out."""
    of = "json_each(?) k CROSS JOIN messages m ON m.message_id = k.value ORDER BY k.key"
    return _source_messages(connection, of, to_json(list(numbers)))


def _source_messages(connection: sqlite3.Connection, of: str, chosen: str) -> list[SourceMessage]:
    rows = connection.execute(
        f"""
        SELECT m.message_id, m.message_key, m.conversation_id, m.role, m.full_text,
               iif(m.parts_text = '', m.token_count, 0), m.created_at
        FROM {of}
        """,  # noqa: S608 (our own constants)
        (chosen,),
    )
    return [SourceMessage._make((*row[:6], parse_instant(row[6]))) for row in rows]


def stored_files(connection: sqlite3.Connection, file_ids: Sequence[str]) -> dict[str, StoredFile]:
    """Large files by their ids; an unknown one is left out."""
    rows = connection.execute(
        """
        SELECT f.file_id, f.ordinal, f.position, f.file_name, f.mime_type, f.byte_size, f.exploration_summary,
               f.conversation_id, f.message_id, m.message_key, f.created_at
        FROM json_each(?) k JOIN large_files f ON f.file_id = k.value LEFT JOIN messages m USING (message_id)
        """,
        (to_json(list(file_ids)),),
    )
    found = {}
    for file_id, ordinal, position, name, mime_type, size, exploration, *of, at in rows:
        file = LargeFile(file_id, ordinal, position, name, mime_type, size or 0, exploration or "")
        found[file_id] = StoredFile._make((file, *of, parse_instant(at)))
    return found


def files_of(connection: sqlite3.Connection, number: int) -> tuple[str, ...]:
    """The ids of the large files that a message, named by its integer key, holds."""
    sql = "SELECT file_id FROM large_files WHERE message_id = ? ORDER BY ordinal, position"
    return tuple(column(connection, sql, number))


def messages_have_words(connection: sqlite3.Connection) -> bool:
    """Say whether anything is said in a stored message."""
    return any(content.strip() for (content,) in connection.execute("SELECT content FROM messages"))


def contents(connection: sqlite3.Connection, conversation: int) -> list[str]:
    """Read the words of a conversation's messages, in order."""
    return column(connection, "SELECT content FROM messages WHERE conversation_id = ? ORDER BY seq", conversation)


def image_counts(connection: sqlite3.Connection, conversation: int) -> dict[str, int]:
    """Count the images of each message of a conversation that holds some, by its id."""
    sql = """
        SELECT message_key FROM messages m WHERE conversation_id = ? AND (
            instr(envelope, 'image') OR instr(content, 'image') OR EXISTS (
                SELECT 1 FROM message_parts p
                WHERE p.message_id = m.message_id AND (instr(metadata, 'image') OR instr(text_content, 'image'))
            )
        )
    """
    told = messages_by_key(connection, column(connection, sql, conversation))
    return {key: images for key, message in told.items() if (images := without_images(message)[1])}


def message_ids_by_number(store: Path, numbers: Collection[int]) -> dict[int, str]:
    """The ids of messages by their numbers, as `lcm grep` tells them; a number that no message has is missing.

    Raises:
        StoreError: if the file is not there or no store; nothing is written.
    """
    if not store.is_file():
        raise StoreError(f"there is no store {str(store)!r}; `lcm ingest ... into={store}` makes one")
    sought = "SELECT message_key FROM messages WHERE message_id = ?"
    try:
        with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM schema_migrations")
            rows = {number: connection.execute(sought, (number,)).fetchone() for number in numbers}
    except (sqlite3.Error, OverflowError) as error:
        raise StoreError(f"{str(store)!r} is no store of lcm: {error}") from error
    return {number: str(row[0]) for number, row in rows.items() if row is not None}


def _begin(connection: sqlite3.Connection, piece: Transcript, key: str) -> _Growing | None:
    """Find the conversation or make it, unless there is nothing to put in; its events are put in anew.

    A file is read from its beginning each time: what it says beside the messages then is what counts.
    """
    conversation = active_conversation(connection, key)
    if conversation is not None:
        set_events_aside(connection, conversation)
        last = last_message(connection, conversation)
        return _Growing(conversation, last.seq if last else 0)
    if not piece.messages and not piece.events:
        return None
    return _Growing(make_conversation(connection, key), 0)


def _insert(
    connection: sqlite3.Connection,
    conversation: int,
    key: str,
    first_seq: int,
    rows: Sequence[MessageRow],
    token_counts: Sequence[int],
    said: Sequence[Message],
) -> None:
    """Put messages behind those of a conversation and of its context, from the seq `first_seq` on."""
    try:
        _insert_rows(connection, conversation, first_seq, rows, token_counts, said)
    except sqlite3.IntegrityError as err:
        raise StoreError(_refusal(connection, conversation, key, first_seq, rows, err)) from err
    connection.execute(
        """
        UPDATE conversations SET session_id = ?, updated_at = ?, created_at = iif(?, ?, created_at)
        WHERE conversation_id = ?
        """,
        (rows[-1].session_id, rows[-1].created_at, first_seq == 1, rows[0].created_at, conversation),
    )


def _difference(connection: sqlite3.Connection, growing: _Growing, rows: Sequence[MessageRow], key: str) -> str | None:
    """Which stored message is not what it was in a piece; None where none is."""
    before = growing.messages
    if min(before + len(rows), growing.stored) <= before:
        return None
    stored = _read_seqs(connection, growing.conversation, before + 1, before + len(rows))
    wrong = (one for one in enumerate(zip(stored, rows, strict=False), start=before) if one[1][0] != one[1][1])
    return next((_changed(key, seq, *pair) for seq, pair in wrong), None)


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


def _encode_messages(messages: Iterable[Message], known: datetime) -> Iterator[MessageRow]:
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


def _encode_part(part: Part) -> tuple[Any, ...]:
    kind, *texts, metadata = _PART(part)
    return (kind, *map(optional_text, texts), mapping_json(metadata))


def _encode_file(file: LargeFile) -> tuple[Any, ...]:
    name, kind = optional_text(file.name), optional_text(file.mime_type)
    return file.file_id, file.ordinal, file.position, name, kind, file.byte_size, well_formed(file.exploration_summary)


def _json(text: str) -> Any:
    """Decoded JSON, of short text the same object for all who ask: nobody changes a record."""
    return _shared_json(text) if len(text) <= _SHARED else json.loads(text)


_shared_json = lru_cache(4096)(json.loads)


def decode_message(row: MessageRow) -> Message:
    return Message(
        message_id=row.message_key,
        role=row.role,  # type: ignore[arg-type]  # the table's CHECK
        content=row.content,
        session_id=row.session_id,
        created_at=parse_instant(row.created_at),
        author=row.author,
        parts=tuple(Part(*(*part[:-1], _json(part[-1]))) for part in row.parts),
        envelope=_json(row.envelope),
        files=tuple(LargeFile(*file) for file in row.files),
    )


def _read_seqs(
    connection: sqlite3.Connection, conversation: int, first: int, last: int = _NO_END
) -> Iterator[MessageRow]:
    """Read messages first to last, by seq."""
    return read_rows(connection, "conversation_id = ? AND seq BETWEEN ? AND ?", conversation, first, last)


def read_rows(connection: sqlite3.Connection, chosen: str, *values: object) -> Iterator[MessageRow]:
    """Read the messages of which a condition is true, by conversation and seq."""
    rows = connection.execute(
        f"SELECT message_id, {', '.join(_OWN_COLUMNS)} FROM messages WHERE {chosen} ORDER BY conversation_id, seq",  # noqa: S608 (our own constants)
        values,
    )
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        numbers = to_json([number for number, *_ in some])
        parts, files = (_grouped(connection.execute(sql, (numbers,))) for sql in (_PARTS, _FILES))
        for number, *own in some:
            yield MessageRow._make((*own, tuple(files.get(number, ())), tuple(parts.get(number, ()))))


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    """The rows of each message, whose number stands first."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row[1:])
    return found


def _insert_rows(
    connection: sqlite3.Connection,
    conversation: int,
    first_seq: int,
    rows: Sequence[MessageRow],
    token_counts: Sequence[int],
    said: Sequence[Message],
) -> None:
    """Put messages behind those of a conversation and of its context, from the seq `first_seq` on."""
    # Row ids are dealt out here, so that parts and context items need no look-up; the write lock is ours.
    first = 1 + (value(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'") or 0)
    columns = ("message_id", "conversation_id", "seq", "token_count", "parts_text", *_OWN_COLUMNS)
    values = [
        (first + i, conversation, first_seq + i, count, parts_text(message), *row[: len(_OWN_COLUMNS)])
        for i, (row, count, message) in enumerate(zip(rows, token_counts, said, strict=True))
    ]
    # Many rows a statement: at the end of each one the full-text table, which follows by trigger, writes out its index.
    for start in range(0, len(values), _ROWS_A_STATEMENT):
        some = values[start : start + _ROWS_A_STATEMENT]
        connection.execute(insertion("messages", columns, len(some)), [*chain.from_iterable(some)])
    connection.executemany(
        insertion("message_parts", ("part_id", "message_id", "session_id", "ordinal", *_PART_COLUMNS)),
        (
            (f"{row.message_key}:{ordinal}", first + i, row.session_id, ordinal, *part)
            for i, row in enumerate(rows)
            for ordinal, part in enumerate(row.parts)
        ),
    )
    connection.executemany(
        insertion("large_files", ("conversation_id", "message_id", "storage_uri", "created_at", *_FILE_COLUMNS)),
        (
            (conversation, first + i, f"part:{row.message_key}:{file[1]}", row.created_at, *file)
            for i, row in enumerate(rows)
            for file in row.files
        ),
    )
    behind = last_ordinal(connection, conversation)
    connection.executemany(
        insertion("context_items", ("conversation_id", "ordinal", "item_type", "message_id", "created_at")),
        (
            (conversation, behind + (i + 1) * ORDINAL_STEP, "message", first + i, row.created_at)
            for i, row in enumerate(rows)
        ),
    )


def last_ordinal(connection: sqlite3.Connection, conversation: int) -> int:
    """The ordinal of the last item of a context; 0 where it is empty."""
    sql = "SELECT coalesce(max(ordinal), 0) FROM context_items WHERE conversation_id = ?"
    return int(value(connection, sql, conversation))


def parts_texts(connection: sqlite3.Connection, conversation: int | None = None) -> Iterator[tuple[str, str]]:
    """Each message's id with what its parts say, worked out anew; conversation: None = all.

    A message that cannot be read is left out: another check of the doctor names it.
    """
    for row in read_rows(connection, "?1 IS NULL OR conversation_id = ?1", conversation):
        try:
            text = parts_text(decode_message(row))
        except (AttributeError, RecursionError, TypeError, ValueError):
            continue
        yield row.message_key, text


def write_parts_texts(connection: sqlite3.Connection) -> None:
    """Keep them with their messages, inside the caller's transaction; those that are right already stay untouched."""
    connection.execute("CREATE TEMP TABLE told (message_key TEXT PRIMARY KEY, parts_text TEXT NOT NULL)")
    connection.executemany("INSERT INTO told VALUES (?, ?)", parts_texts(connection))
    connection.execute(
        """
        UPDATE messages SET parts_text = told.parts_text FROM told
        WHERE told.message_key = messages.message_key AND told.parts_text <> messages.parts_text
        """
    )
    connection.execute("DROP TABLE told")
