"""Messages in and out of the store, and the law that a stored transcript only ever grows."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.clock import EPOCH, parse_instant
from lcm.encoding import require_id
from lcm.errors import StoreError
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Message, Transcript
from lcm.store.conversations import (
    active_conversation,
    add_events,
    end_events,
    last_message,
    make_conversation,
    set_events_aside,
    set_title,
    touch,
)
from lcm.store.message_rows import MessageRow, decode_message, encode_messages, insert_rows, read_rows
from lcm.transcript.images import without_images
from lcm.transcript.message_tokens import Rendering, message_tokens
from lcm.transcript.passages import parts_text

_BATCH = 500


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


def add_pieces(
    connection: sqlite3.Connection,
    pieces: Iterable[Transcript],
    tokens: TokenEstimator,
    rendered: Rendering,
    refused: dict[str, str] | None,
) -> int:
    """Append what the stored conversations lack, inside the caller's transaction; see `Store.ingest_pieces`."""
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
        rows = list(encode_messages(piece.messages, growing.known_at))
        growing.refusal = _difference(connection, growing, rows, key)
        if growing.refusal is not None:
            if refused is None:
                raise StoreError(growing.refusal)
            continue
        if new := rows[max(0, growing.stored - growing.messages) :]:
            said = piece.messages[-len(new) :]
            first_seq = growing.messages + len(rows) - len(new) + 1
            counts = message_tokens(said, rendered, tokens, piece.events, first_seq - 1)
            _insert(connection, growing.conversation, key, first_seq, new, counts, [*map(parts_text, said)])
            added += len(new)
        growing.title = growing.title if piece.title is None else piece.title
        add_events(connection, growing.conversation, growing.events, piece.events)
        growing.events += len(piece.events)
        growing.messages += len(rows)
        growing.known_at = parse_instant(rows[-1].created_at) if rows else growing.known_at
    for key, growing in all_growing.items():
        if growing.refusal is None and growing.messages < growing.stored:
            missing = next(read_rows(connection, growing.conversation, growing.messages + 1))
            growing.refusal = _changed(key, growing.messages, missing, None)
        _end(connection, growing)
        if growing.refusal is not None:
            if refused is None:
                raise StoreError(growing.refusal)
            refused[key] = growing.refusal
    return added


def append(
    connection: sqlite3.Connection,
    conversation_key: str,
    messages: Sequence[Message],
    tokens: TokenEstimator,
    rendered: Rendering,
) -> None:
    """Put messages behind those of a conversation, which is made if need be, inside the caller's transaction."""
    key = require_id(conversation_key, "conversation id")
    if not messages:
        return
    conversation = active_conversation(connection, key)
    if conversation is None:
        conversation = make_conversation(connection, key)
    last = last_message(connection, conversation)
    rows = list(encode_messages(messages, last.created_at if last else EPOCH))
    counts = message_tokens(messages, rendered, tokens)
    _insert(connection, conversation, key, last.seq + 1 if last else 1, rows, counts, [*map(parts_text, messages)])


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


def _end(connection: sqlite3.Connection, growing: _Growing) -> None:
    """Give a conversation what was read beside its messages; a refused one has what it had."""
    end_events(connection, growing.conversation, is_refused=growing.refusal is not None)
    if growing.refusal is None:
        set_title(connection, growing.conversation, growing.title)


def _insert(
    connection: sqlite3.Connection,
    conversation: int,
    key: str,
    first_seq: int,
    rows: Sequence[MessageRow],
    token_counts: Sequence[int],
    parts_texts: Sequence[str],
) -> None:
    try:
        insert_rows(connection, conversation, first_seq, rows, token_counts, parts_texts)
    except sqlite3.IntegrityError as err:
        raise StoreError(_refusal(connection, conversation, key, first_seq, rows, err)) from err
    began_at = rows[0].created_at if first_seq == 1 else None
    touch(connection, conversation, rows[-1].session_id, rows[-1].created_at, began_at)


def read_messages(connection: sqlite3.Connection, conversation_key: str | None, first_seq: int = 1) -> list[Message]:
    """Read records back, conversations in the order of their first ingest, messages by seq."""
    conversations = connection.execute(
        """
        SELECT conversation_id FROM conversations
        WHERE ?1 IS NULL OR session_key = ?1 ORDER BY conversation_id
        """,
        (conversation_key,),
    ).fetchall()
    return [decode_message(row) for (key,) in conversations for row in read_rows(connection, key, first_seq)]


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
                for row in read_rows(connection, conversation, first, last):
                    found[row.message_key] = decode_message(row)
    return found


def messages_have_words(connection: sqlite3.Connection) -> bool:
    """Say whether a message has more than white space."""
    contents = connection.execute("SELECT content FROM messages")
    return any(content.strip() for (content,) in contents)


def image_counts(connection: sqlite3.Connection, conversation: int) -> dict[str, int]:
    """Count the images of each message of a conversation that holds some, by its id."""
    rows = connection.execute(
        """
        SELECT message_key FROM messages m WHERE conversation_id = ? AND (
            instr(envelope, 'image') OR instr(content, 'image') OR EXISTS (
                SELECT 1 FROM message_parts p
                WHERE p.message_id = m.message_id AND (instr(metadata, 'image') OR instr(text_content, 'image'))
            )
        )
        """,
        (conversation,),
    )
    told = messages_by_key(connection, [key for (key,) in rows])
    return {key: images for key, message in told.items() if (images := without_images(message)[1])}


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of each stretch without gaps."""
    start = 0
    for i, number in enumerate(numbers):
        if i + 1 == len(numbers) or numbers[i + 1] != number + 1:
            yield numbers[start], number
            start = i + 1


def _difference(connection: sqlite3.Connection, growing: _Growing, rows: Sequence[MessageRow], key: str) -> str | None:
    """Which stored message is not what it was in a piece; None where none is."""
    before = growing.messages
    last = min(before + len(rows), growing.stored)
    if last <= before:
        return None
    stored = read_rows(connection, growing.conversation, before + 1, last)
    for seq, (old, new) in enumerate(zip(stored, rows, strict=False), start=before):
        if old != new:
            return _changed(key, seq, old, new)
    return None


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
