"""The session side of conversations: whose they are, how far a session file was read, what is archived or hidden, and
what a host said of its sessions. Functions to be called inside `Store.writing` or `reading`."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lcm.clock import format_instant, parse_instant
from lcm.encoding import mapping_json, require_id, well_formed
from lcm.records.conversation import JournalEntry
from lcm.store.context import read_context, remove_from_context
from lcm.store.conversations import make_conversation
from lcm.store.messages import ORDINAL_STEP


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
    (used,) = connection.execute(
        """
        SELECT EXISTS (SELECT 1 FROM messages WHERE conversation_id = ?1)
            OR EXISTS (SELECT 1 FROM context_items WHERE conversation_id = ?1)
        """,
        (session.conversation,),
    ).fetchone()
    return not session.is_bootstrapped and not used


def archive(connection: sqlite3.Connection, session: SessionRow, now: datetime) -> str:
    """Let another conversation take its id: it goes by a numbered one from now on, and stays readable by that.

    Returns:
        The id that it goes by.
    """
    taken = {
        key
        for (key,) in connection.execute(
            "SELECT session_key FROM conversations WHERE substr(session_key, 1, ?) = ?",
            (len(session.conversation_id) + 1, f"{session.conversation_id}#"),
        )
    }
    number = next(n for n in range(1, len(taken) + 2) if f"{session.conversation_id}#{n}" not in taken)
    name = f"{session.conversation_id}#{number}"
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


def hidden_ids(connection: sqlite3.Connection, conversation: int) -> set[str]:
    rows = connection.execute(
        "SELECT message_key FROM messages WHERE conversation_id = ? AND hidden_at IS NOT NULL", (conversation,)
    )
    return {key for (key,) in rows}


def hide(connection: sqlite3.Connection, conversation: int, message_ids: Iterable[str], now: datetime) -> int:
    """Take messages out of the context, unless a summary stands for them; the store keeps them.

    Returns:
        How many were hidden.
    """
    ordinals = {entry.item_id: entry.ordinal for entry in read_context(connection, conversation) if entry.is_message}
    there = [message_id for message_id in dict.fromkeys(message_ids) if message_id in ordinals]
    connection.executemany(
        "UPDATE messages SET hidden_at = ? WHERE message_key = ? AND hidden_at IS NULL",
        [(format_instant(now), message_id) for message_id in there],
    )
    remove_from_context(connection, conversation, [ordinals[message_id] for message_id in there])
    return len(there)


def show(connection: sqlite3.Connection, conversation: int, message_ids: Sequence[str]) -> None:
    """Put hidden messages back, at the end of the context: what followed them is hidden in their turn."""
    (last,) = connection.execute(
        "SELECT coalesce(max(ordinal), 0) FROM context_items WHERE conversation_id = ?", (conversation,)
    ).fetchone()
    for place, message_id in enumerate(message_ids, start=1):
        (row,) = connection.execute("SELECT message_id FROM messages WHERE message_key = ?", (message_id,)).fetchone()
        connection.execute(
            "DELETE FROM retired_items WHERE conversation_id = ? AND message_id = ?", (conversation, row)
        )
        connection.execute("UPDATE messages SET hidden_at = NULL WHERE message_id = ?", (row,))
        connection.execute(
            """
            INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, created_at)
            SELECT conversation_id, ?, 'message', message_id, created_at FROM messages WHERE message_id = ?
            """,
            (last + place * ORDINAL_STEP, row),
        )


def free_ids(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[str]:
    """Number those message ids that are taken in the store, or by one before them."""
    free: dict[str, None] = {}
    for message_id in wanted:
        name, number = message_id, 1
        while name in free or _is_taken(connection, name):
            number += 1
            name = f"{message_id}#{number}"
        free[name] = None
    return list(free)


def _is_taken(connection: sqlite3.Connection, message_id: str) -> bool:
    return connection.execute("SELECT 1 FROM messages WHERE message_key = ?", (message_id,)).fetchone() is not None


def add_entry(connection: sqlite3.Connection, entry: JournalEntry, max_entries: int) -> None:
    """Keep an entry; of too many the oldest go, by instant and id. `max_entries` 0 or less: all are kept.

    An entry whose id is taken takes its place.
    """
    connection.execute(
        "INSERT OR REPLACE INTO lifecycle_journal (entry_id, happened_at, hook, session_id, fields) VALUES (?,?,?,?,?)",
        (
            require_id(entry.entry_id, "entry id"),
            format_instant(entry.happened_at),
            well_formed(entry.hook),
            well_formed(entry.session_id),
            mapping_json(entry.fields),
        ),
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
