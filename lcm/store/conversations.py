"""Conversations as rows: by what id they go, how far they are stored and extracted, what was recorded beside them, and
the transcript files that they came from; whose live session each is, and what a host said of that."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import polars as pl

from lcm.clock import EPOCH, format_instant, parse_instant
from lcm.encoding import mapping_json, require_id, to_json, well_formed
from lcm.errors import StoreError
from lcm.records.conversation import Event, JournalEntry
from lcm.store.sqlite import INSTANT, add_row, column, frame, insertion, selected, value

CONVERSATION_SCHEMA: dict[str, pl.DataType] = {
    "conversation_id": pl.String(),
    "title": pl.String(),
    "messages": pl.Int64(),
    "first_at": INSTANT,
    "last_at": INSTANT,
}
"""The columns of `Store.conversations`."""

MESSAGE_SCHEMA: dict[str, pl.DataType] = {
    "message_id": pl.String(),
    "conversation_id": pl.String(),
    "session_id": pl.String(),
    "seq": pl.Int64(),
    "role": pl.String(),
    "author": pl.String(),
    "created_at": INSTANT,
    "tokens": pl.Int64(),
}
"""The columns of `Store.message_frame`."""


class LastMessage(NamedTuple):
    """The newest message of a conversation."""

    seq: int
    """Also how many there are."""
    message_id: str
    created_at: datetime


class ConversationTotals(NamedTuple):
    """A conversation's messages, summaries and tokens in numbers."""

    messages: int
    tokens_before: int
    """Of all its messages."""
    tokens_after: int
    """Of its context."""
    summaries: list[tuple[int, str, str, int]]
    """Depth, level, method, and how many there are of it."""


def conversation_frame(connection: sqlite3.Connection) -> pl.DataFrame:
    """Read `CONVERSATION_SCHEMA`, in the order of the first ingest."""
    read = connection.execute(
        """
        SELECT c.session_key, c.title, count(m.message_id), min(m.created_at), max(m.created_at)
        FROM conversations c LEFT JOIN messages m USING (conversation_id)
        GROUP BY c.conversation_id ORDER BY c.conversation_id
        """
    )
    return frame(read, CONVERSATION_SCHEMA)


def message_frame(connection: sqlite3.Connection, conversation_id: str | None = None) -> pl.DataFrame:
    """Read `MESSAGE_SCHEMA` of one conversation, or of all, in the order of `Store.messages`."""
    conversation = None if conversation_id is None else conversation_row(connection, conversation_id)
    others = {"message_id": "m.message_key", "conversation_id": "c.session_key", "tokens": "m.token_count"}
    read = connection.execute(
        f"""
        SELECT {selected(MESSAGE_SCHEMA, others, "m")} FROM messages m JOIN conversations c USING (conversation_id)
        WHERE ?1 IS NULL OR m.conversation_id = ?1 ORDER BY m.conversation_id, m.seq
        """,  # noqa: S608 (our own constants)
        (conversation,),
    )
    return frame(read, MESSAGE_SCHEMA)


def conversation_row(connection: sqlite3.Connection, conversation_id: str) -> int:
    """The integer key of a conversation, the active one before archived ones of the same id.

    Raises:
        StoreError: if there is none.
    """
    active = active_conversation(connection, conversation_id)
    return conversation_rows(connection, conversation_id)[0] if active is None else active


def conversation_rows(connection: sqlite3.Connection, conversation_id: str) -> list[int]:
    """The integer keys of the active conversation and of the archived ones of the same id, oldest first.

    Raises:
        StoreError: if there is none.
    """
    sql = "SELECT conversation_id FROM conversations WHERE session_key = ? ORDER BY conversation_id"
    if rows := column(connection, sql, conversation_id):
        return rows
    raise StoreError(f"there is no conversation {conversation_id!r} in the store")


def conversation_names(connection: sqlite3.Connection) -> dict[int, str]:
    """The id of every conversation, by its integer key; archived ones too."""
    rows = connection.execute("SELECT conversation_id, coalesce(session_key, session_id) FROM conversations")
    return dict(rows.fetchall())


def number_of(connection: sqlite3.Connection, named: str) -> str | int:
    """A conversation's id where one has it, else the integer key that it spells; the name again where it is neither."""
    sql = """
        SELECT session_key FROM conversations WHERE session_key = ?1
        UNION ALL SELECT conversation_id FROM conversations WHERE conversation_id = CAST(?1 AS INTEGER) LIMIT 1
    """
    found: str | int | None = value(connection, sql, named)
    return named if found is None else found


def active_conversation(connection: sqlite3.Connection, conversation_id: str) -> int | None:
    """The integer key of the active conversation of an id."""
    sql = "SELECT conversation_id FROM conversations WHERE session_key = ? AND active = 1"
    found: int | None = value(connection, sql, conversation_id)
    return found


def make_conversation(
    connection: sqlite3.Connection, conversation_id: str, session_id: str | None = None, made_at: datetime = EPOCH
) -> int:
    """Add a conversation that nothing was said in yet, inside the caller's transaction; gives its integer key."""
    at = format_instant(made_at)  # until the first message is there
    session = conversation_id if session_id is None else session_id
    row = {"session_id": session, "session_key": conversation_id, "created_at": at, "updated_at": at}
    return add_row(connection, "conversations", row)


def set_title(connection: sqlite3.Connection, conversation: int, title: str | None) -> None:
    """Name a conversation; None leaves its name."""
    if title is not None:
        connection.execute(
            "UPDATE conversations SET title = ? WHERE conversation_id = ?", (well_formed(title), conversation)
        )


def last_message(connection: sqlite3.Connection, conversation: int) -> LastMessage | None:
    """Read how far a conversation is stored."""
    row = connection.execute(
        "SELECT seq, message_key, created_at FROM messages WHERE conversation_id = ? ORDER BY seq DESC LIMIT 1",
        (conversation,),
    ).fetchone()
    return row and LastMessage(row[0], row[1], parse_instant(row[2]))


def read_last(connection: sqlite3.Connection, conversation_id: str) -> LastMessage | None:
    """Read how far the active conversation of an id is stored; None where nothing of it is."""
    conversation = active_conversation(connection, conversation_id)
    return None if conversation is None else last_message(connection, conversation)


def last_said(connection: sqlite3.Connection, conversation_id: str) -> datetime:
    """When the last message of a conversation was said.

    Raises:
        StoreError: if nothing was.
    """
    last = last_message(connection, conversation_row(connection, conversation_id))
    if last is None:
        raise StoreError(f"nothing has been said in conversation {conversation_id!r}")
    return last.created_at


def latest_instant(
    connection: sqlite3.Connection, conversation: int, messages: int, since: datetime, until: datetime
) -> datetime | None:
    """The latest instant of the first so many messages of a conversation, of those in [since, until)."""
    sql = """
        SELECT max(created_at) FROM messages
        WHERE conversation_id = ? AND seq <= ? AND created_at >= ? AND created_at < ?
    """
    found = value(connection, sql, conversation, messages, format_instant(since), format_instant(until))
    return None if found is None else parse_instant(found)


def conversation_totals(connection: sqlite3.Connection, conversation: int) -> ConversationTotals:
    """Read what a conversation costs, and what it was made into."""
    messages, before = connection.execute(
        "SELECT count(*), coalesce(sum(token_count), 0) FROM messages WHERE conversation_id = ?", (conversation,)
    ).fetchone()
    in_context = """
        SELECT coalesce(sum(coalesce(m.token_count, s.token_count)), 0)
        FROM context_items i LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
        WHERE i.conversation_id = ?
    """
    summaries = connection.execute(
        """
        SELECT depth, level, method, count(*) FROM summaries WHERE conversation_id = ?
        GROUP BY depth, level, method ORDER BY depth, level, method
        """,
        (conversation,),
    ).fetchall()
    return ConversationTotals(messages, before, value(connection, in_context, conversation), summaries)


def add_events(connection: sqlite3.Connection, conversation: int, before: int, events: Sequence[Event]) -> None:
    """Put events behind the first `before` of a conversation's, which are all that it has."""
    rows = (
        (conversation, before + i, event.after, well_formed(event.kind), to_json(event.native))
        for i, event in enumerate(events, start=1)
    )
    columns = ("conversation_id", "ordinal", "after_seq", "kind", "native")
    connection.executemany(insertion("conversation_events", columns), rows)


def set_events_aside(connection: sqlite3.Connection, conversation: int) -> None:
    """Make room for the events of a transcript that is read again; `end_events` says which stay."""
    connection.execute("UPDATE conversation_events SET ordinal = -ordinal WHERE conversation_id = ?", (conversation,))


def end_events(connection: sqlite3.Connection, conversation: int, *, is_refused: bool) -> None:
    """Forget the events that were set aside, or, of a refused transcript, those that were put in since."""
    left = "> 0" if is_refused else "< 0"
    connection.execute(
        f"DELETE FROM conversation_events WHERE conversation_id = ? AND ordinal {left}",  # noqa: S608  # our constants
        (conversation,),
    )
    if is_refused:
        set_events_aside(connection, conversation)  # the sign of each is turned back


def put_events(
    connection: sqlite3.Connection, conversation: int, before: int, events: Sequence[Event], title: str | None
) -> None:
    """Put events behind the first `before` of a conversation's and drop all others; and a title, where given.

    A file is read from its beginning each time: what it says beside the messages then is what counts.
    """
    connection.execute(
        "DELETE FROM conversation_events WHERE conversation_id = ? AND ordinal > ?", (conversation, before)
    )
    add_events(connection, conversation, before, events)
    set_title(connection, conversation, title)


def read_events(connection: sqlite3.Connection, conversation_id: str) -> list[Event]:
    """Read what was recorded beside a conversation's messages, in order."""
    rows = connection.execute(
        """
        SELECT e.kind, e.native, e.after_seq FROM conversation_events e JOIN conversations c USING (conversation_id)
        WHERE c.session_key = ? ORDER BY e.ordinal
        """,
        (conversation_id,),
    )
    return [Event(kind, json.loads(native), after) for kind, native, after in rows]


def read_extracted(connection: sqlite3.Connection, conversation_id: str | None = None) -> dict[str, int]:
    """Tell how far extraction has gone in conversations where messages stand behind that: the last seq it saw.

    Args:
        conversation_id: the only one that is looked at; None = all are.
    """
    rows = connection.execute(
        f"""
        SELECT c.session_key, coalesce(e.extracted_seq, 0) AS extracted
        FROM conversations c LEFT JOIN extraction_state e USING (conversation_id)
        WHERE {"?1 IS NULL" if conversation_id is None else "c.session_key = ?1"}
          AND extracted < (SELECT max(m.seq) FROM messages m WHERE m.conversation_id = c.conversation_id)
        ORDER BY c.conversation_id
        """,  # noqa: S608 (our own constants)
        (conversation_id,),
    )
    return dict(rows.fetchall())


def put_extracted(connection: sqlite3.Connection, conversation_id: str, seq: int) -> None:
    """Note that extraction was given the messages up to `seq`."""
    connection.execute(
        """
        INSERT INTO extraction_state (conversation_id, extracted_seq)
        SELECT conversation_id, ? FROM conversations WHERE session_key = ?
        ON CONFLICT (conversation_id) DO UPDATE SET extracted_seq = excluded.extracted_seq
        """,
        (seq, conversation_id),
    )


def is_done(connection: sqlite3.Connection, digest: str) -> bool:
    """Whether a transcript file of that sha256 has been taken in and compacted."""
    sql = "SELECT count(*) FROM transcript_files WHERE digest = ? AND state = 'compacted'"
    return bool(value(connection, sql, digest))


def note_done(connection: sqlite3.Connection, digest: str, path: str, messages: int, finished_at: datetime) -> None:
    """Note that a transcript file of that sha256 has been taken in and compacted."""
    connection.execute(
        """
        INSERT INTO transcript_files (digest, path, messages, state, finished_at) VALUES (?, ?, ?, 'compacted', ?)
        ON CONFLICT (digest) DO UPDATE SET
          path = excluded.path, messages = excluded.messages, state = excluded.state, finished_at = excluded.finished_at
        """,
        (digest, well_formed(path), messages, format_instant(finished_at)),
    )


class Checkpoint(NamedTuple):
    """How far a session file has been read."""

    path: str
    size: int
    mtime_ms: int
    offset: int
    entry_hash: str | None
    """sha256 of role and content of the last message before the offset."""


class SessionRow(NamedTuple):
    """The row of a conversation, with what a live session needs of it."""

    conversation: int
    conversation_id: str
    is_bootstrapped: bool


def find_session(connection: sqlite3.Connection, session_id: str, session_key: str) -> SessionRow | None:
    """The active conversation of the key, if there is one, else of the session id; the newest first."""
    rows = connection.execute(
        """
        SELECT conversation_id, session_key, bootstrapped_at IS NOT NULL FROM conversations
        WHERE active = 1 AND (session_key = ?1 OR session_id = ?2)
        ORDER BY session_key = ?1 DESC, conversation_id DESC
        """,
        (session_key or session_id, session_id),
    ).fetchall()
    found = [SessionRow(row, key, bool(done)) for row, key, done in rows]
    # A row that goes by its session id has no key yet; one with another key is another session's.
    mine = [row for row in found if not session_key or row.conversation_id in (session_key, session_id)]
    return mine[0] if mine else None


def open_session(connection: sqlite3.Connection, session_id: str, session_key: str, now: datetime) -> SessionRow:
    """Find the conversation of a session or make it; it follows the session id, and takes a key that it lacked."""
    found = find_session(connection, session_id, session_key)
    if found is None:
        key = session_key or session_id
        return SessionRow(make_conversation(connection, key, session_id, now), key, is_bootstrapped=False)
    key = session_key or found.conversation_id
    connection.execute(
        "UPDATE conversations SET session_id = ?, session_key = ? WHERE conversation_id = ?",
        (session_id, key, found.conversation),
    )
    return found._replace(conversation_id=key)


def is_fresh(connection: sqlite3.Connection, session: SessionRow) -> bool:
    """Whether nothing has happened in it yet."""
    sql = """
        SELECT EXISTS (SELECT 1 FROM messages WHERE conversation_id = ?1)
            OR EXISTS (SELECT 1 FROM context_items WHERE conversation_id = ?1)
    """
    return not session.is_bootstrapped and not value(connection, sql, session.conversation)


def archive(connection: sqlite3.Connection, session: SessionRow, now: datetime) -> str:
    """Let another conversation take its id: it goes by a numbered one from now on, and stays readable by that.

    Returns:
        The id that it goes by.
    """
    base = f"{session.conversation_id}#"
    sql = "SELECT session_key FROM conversations WHERE substr(session_key, 1, ?) = ?"
    taken = set(column(connection, sql, len(base), base))
    name = next(one for number in range(1, len(taken) + 2) if (one := f"{base}{number}") not in taken)
    connection.execute(
        """
        UPDATE conversations SET active = 0, session_key = ?, archived_at = coalesce(archived_at, ?)
        WHERE conversation_id = ?
        """,
        (name, format_instant(now), session.conversation),
    )
    return name


def read_checkpoint(connection: sqlite3.Connection, conversation: int) -> Checkpoint | None:
    row = connection.execute(
        """
        SELECT session_file_path, last_seen_size, last_seen_mtime_ms, last_processed_offset, last_processed_entry_hash
        FROM conversation_bootstrap_state WHERE conversation_id = ?
        """,
        (conversation,),
    ).fetchone()
    return None if row is None else Checkpoint._make(row)


def put_checkpoint(connection: sqlite3.Connection, conversation: int, checkpoint: Checkpoint, now: datetime) -> None:
    connection.execute(
        """
        INSERT OR REPLACE INTO conversation_bootstrap_state
            (conversation_id, session_file_path, last_seen_size, last_seen_mtime_ms, last_processed_offset,
             last_processed_entry_hash, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        (conversation, *checkpoint, format_instant(now)),
    )


def mark_bootstrapped(connection: sqlite3.Connection, conversation: int, now: datetime) -> None:
    """Note it once."""
    connection.execute(
        "UPDATE conversations SET bootstrapped_at = coalesce(bootstrapped_at, ?) WHERE conversation_id = ?",
        (format_instant(now), conversation),
    )


def free_ids(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[str]:
    """Number those message ids that are taken in the store, or by one before them."""
    free: dict[str, None] = {}
    for message_id in wanted:
        name, number = message_id, 1
        while name in free or value(connection, "SELECT 1 FROM messages WHERE message_key = ?", name):
            number += 1
            name = f"{message_id}#{number}"
        free[name] = None
    return list(free)


def add_entry(connection: sqlite3.Connection, entry: JournalEntry, max_entries: int) -> None:
    """Keep an entry; of too many the oldest go, by instant and id. `max_entries` 0 or less: all are kept.

    An entry whose id is taken takes its place.
    """
    row = (
        require_id(entry.entry_id, "entry id"),
        format_instant(entry.happened_at),
        well_formed(entry.hook),
        well_formed(entry.session_id),
        mapping_json(entry.fields),
    )
    connection.execute(
        "INSERT OR REPLACE INTO lifecycle_journal (entry_id, happened_at, hook, session_id, fields) VALUES (?,?,?,?,?)",
        row,
    )
    if max_entries > 0:
        connection.execute(
            """
            DELETE FROM lifecycle_journal WHERE entry_id IN (
              SELECT entry_id FROM lifecycle_journal ORDER BY happened_at DESC, entry_id DESC LIMIT -1 OFFSET ?)
            """,
            (max_entries,),
        )


def read_entries(connection: sqlite3.Connection, session_id: str | None = None, limit: int = -1) -> list[JournalEntry]:
    """The newest entries, oldest first: of one session, or of all; at most `limit`, -1 = all."""
    rows = connection.execute(
        """
        SELECT * FROM (
          SELECT entry_id, happened_at, hook, session_id, fields FROM lifecycle_journal
          WHERE ?1 IS NULL OR session_id = ?1 ORDER BY happened_at DESC, entry_id DESC LIMIT ?2)
        ORDER BY happened_at, entry_id
        """,
        (session_id, limit),
    )
    return [
        JournalEntry(entry_id, parse_instant(at), hook, session, json.loads(fields))
        for entry_id, at, hook, session, fields in rows
    ]
