"""The context of a conversation: the ordered list of messages and summaries that stands for all that was said."""

import json
import sqlite3
from collections.abc import Sequence

from lcm.clock import format_instant
from lcm.collection import collection_paused
from lcm.errors import StoreError
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, Summary
from lcm.store.messages import messages_by_key
from lcm.store.summaries import insert_summary, summaries_by_id


def read_context(connection: sqlite3.Connection, conversation: int, after: int = -1) -> list[ContextEntry]:
    """Read the items with an ordinal beyond `after`."""
    rows = connection.execute(
        """
        SELECT i.ordinal, i.item_type, coalesce(m.message_key, s.summary_id), coalesce(m.token_count, s.token_count),
               s.depth
        FROM context_items i LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
        WHERE i.conversation_id = ? AND i.ordinal > ? ORDER BY i.ordinal
        """,
        (conversation, after),
    )
    with collection_paused():
        return [ContextEntry._make(row) for row in rows.fetchall()]


def read_standing(connection: sqlite3.Connection, conversation: int, ordinals: Sequence[int]) -> set[str]:
    """Read the ids of the messages at these ordinals."""
    rows = connection.execute(
        """
        SELECT m.message_key FROM context_items i JOIN messages m USING (message_id)
        WHERE i.conversation_id = ? AND i.ordinal IN (SELECT value FROM json_each(?))
        """,
        (conversation, json.dumps(list(ordinals))),
    )
    return {message_id for (message_id,) in rows}


def read_records(connection: sqlite3.Connection, entries: Sequence[ContextEntry]) -> list[Message | Summary]:
    """Read what entries stand for."""
    messages = messages_by_key(connection, [entry.item_id for entry in entries if entry.is_message])
    summaries = summaries_by_id(connection, [entry.item_id for entry in entries if not entry.is_message])
    return [messages[entry.item_id] if entry.is_message else summaries[entry.item_id] for entry in entries]


def replace_range(connection: sqlite3.Connection, conversation: int, first: int, last: int, summary: Summary) -> None:
    """Put a summary in the place of the context items that it was made of, inside the caller's transaction.

    Raises:
        StoreError: if the items from ordinal `first` to `last` are not exactly the summary's sources.
    """
    found = tuple(
        key
        for (key,) in connection.execute(
            """
            SELECT coalesce(m.message_key, i.summary_id) FROM context_items i LEFT JOIN messages m USING (message_id)
            WHERE i.conversation_id = ? AND i.ordinal BETWEEN ? AND ? ORDER BY i.ordinal
            """,
            (conversation, first, last),
        )
    )
    if not found or found != summary.source_ids:
        raise StoreError(
            f"conversation {summary.conversation_id!r}: the context from {first} to {last} is no longer what the "
            f"summary was made of ({len(found)} items, {len(summary.source_ids)} sources); plan again"
        )
    insert_summary(connection, conversation, summary)
    connection.execute(
        "DELETE FROM context_items WHERE conversation_id = ? AND ordinal BETWEEN ? AND ?", (conversation, first, last)
    )
    connection.execute(
        """
        INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, created_at)
        VALUES (?, ?, 'summary', ?, ?)
        """,
        (conversation, first, summary.summary_id, format_instant(summary.created_at)),
    )


def remove_from_context(connection: sqlite3.Connection, conversation: int, ordinals: Sequence[int]) -> None:
    """Take items out of the context; their messages and summaries stay in the store, and are noted as retired."""
    connection.executemany(
        """
        INSERT INTO retired_items (conversation_id, ordinal, item_type, message_id, summary_id)
        SELECT conversation_id, ordinal, item_type, message_id, summary_id FROM context_items
        WHERE conversation_id = ? AND ordinal = ?
        """,
        [(conversation, ordinal) for ordinal in ordinals],
    )
    connection.executemany(
        "DELETE FROM context_items WHERE conversation_id = ? AND ordinal = ?",
        [(conversation, ordinal) for ordinal in ordinals],
    )


def read_retired(connection: sqlite3.Connection, conversation: int) -> list[str]:
    """The ids of messages and summaries that a rule took out of the context."""
    rows = connection.execute(
        """
        SELECT coalesce(m.message_key, r.summary_id) FROM retired_items r LEFT JOIN messages m USING (message_id)
        WHERE r.conversation_id = ? ORDER BY r.ordinal
        """,
        (conversation,),
    )
    return [item_id for (item_id,) in rows]
