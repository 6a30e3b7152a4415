"""What a batch keeps account of in the store that it fills: files that are done, and turns that were compacted."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from lcm.clock import format_instant, parse_instant
from lcm.encoding import to_json, well_formed
from lcm.records import Event


class Heard(NamedTuple):
    """How far a conversation is stored."""

    messages: int
    last_id: str
    """Of its last message."""
    last_at: datetime


class ConversationTotals(NamedTuple):
    """What a conversation costs, and what it was made into."""

    messages: int
    tokens_before: int
    """Of all its messages."""
    tokens_after: int
    """Of its context."""
    summaries: list[tuple[int, str, str, int]]
    """Depth, level, method, and how many there are of it."""


def is_done(connection: sqlite3.Connection, digest: str) -> bool:
    """Whether a file of that digest has been taken in and compacted."""
    found = connection.execute(
        "SELECT 1 FROM transcript_files WHERE digest = ? AND state = 'compacted'", (digest,)
    ).fetchone()
    return found is not None


def note_done(connection: sqlite3.Connection, digest: str, path: str, messages: int, finished_at: datetime) -> None:
    """Note that a file has been taken in and compacted, inside the caller's transaction."""
    connection.execute(
        """
        INSERT INTO transcript_files (digest, path, messages, state, finished_at) VALUES (?, ?, ?, 'compacted', ?)
        ON CONFLICT (digest) DO UPDATE SET
          path = excluded.path, messages = excluded.messages, state = excluded.state, finished_at = excluded.finished_at
        """,
        (digest, well_formed(path), messages, format_instant(finished_at)),
    )


def read_heard(connection: sqlite3.Connection, conversation_key: str) -> Heard | None:
    """How far a conversation is stored; None where nothing is."""
    row = connection.execute(
        """
        SELECT m.seq, m.message_key, m.created_at FROM conversations c JOIN messages m USING (conversation_id)
        WHERE c.session_key = ? AND c.active = 1 ORDER BY m.seq DESC LIMIT 1
        """,
        (conversation_key,),
    ).fetchone()
    return row and Heard(row[0], row[1], parse_instant(row[2]))


def last_detail(connection: sqlite3.Connection, conversation: int, event: str) -> str | None:
    """What was noted with the newest compaction event of that name."""
    row: tuple[str] | None = connection.execute(
        """
        SELECT detail FROM compaction_events WHERE conversation_id = ? AND event = ? ORDER BY event_id DESC LIMIT 1
        """,
        (conversation, event),
    ).fetchone()
    return row and row[0]


def put_events(
    connection: sqlite3.Connection, conversation: int, before: int, events: Sequence[Event], title: str | None
) -> None:
    """Put events behind the first `before` of a conversation's and drop all others, inside the caller's transaction.

    A file is heard from its beginning whenever it is read: what it says beside the messages then is what counts.
    """
    connection.execute(
        "DELETE FROM conversation_events WHERE conversation_id = ? AND ordinal > ?", (conversation, before)
    )
    connection.executemany(
        "INSERT INTO conversation_events (conversation_id, ordinal, after_seq, kind, native) VALUES (?, ?, ?, ?, ?)",
        (
            (conversation, before + i, event.after, well_formed(event.kind), to_json(event.native))
            for i, event in enumerate(events, start=1)
        ),
    )
    if title is not None:
        connection.execute(
            "UPDATE conversations SET title = ? WHERE conversation_id = ?", (well_formed(title), conversation)
        )


def conversation_totals(connection: sqlite3.Connection, conversation: int) -> ConversationTotals:
    messages, before = connection.execute(
        "SELECT count(*), coalesce(sum(token_count), 0) FROM messages WHERE conversation_id = ?", (conversation,)
    ).fetchone()
    (after,) = connection.execute(
        """
        SELECT coalesce(sum(coalesce(m.token_count, s.token_count)), 0)
        FROM context_items i LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
        WHERE i.conversation_id = ?
        """,
        (conversation,),
    ).fetchone()
    summaries = connection.execute(
        """
        SELECT depth, level, method, count(*) FROM summaries WHERE conversation_id = ?
        GROUP BY depth, level, method ORDER BY depth, level, method
        """,
        (conversation,),
    ).fetchall()
    return ConversationTotals(messages, before, after, summaries)
