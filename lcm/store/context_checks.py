"""Whether the messages and the context of a conversation are in order.

Source: lossless-claw 0.6.3. What one query can tell is in `checks.sql`.
"""

import sqlite3
from collections.abc import Iterator

from lcm.store.context import read_context


def conversation_keys(connection: sqlite3.Connection) -> list[int]:
    return [key for (key,) in connection.execute("SELECT conversation_id FROM conversations ORDER BY conversation_id")]


def unknown_conversation(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    if conversation is not None and conversation not in conversation_keys(connection):
        yield f"there is no conversation {conversation}"


def context_gaps(connection: sqlite3.Connection, keys: list[int]) -> Iterator[str]:
    for key in keys:
        rows = connection.execute(
            "SELECT ordinal FROM context_items WHERE conversation_id = ? ORDER BY ordinal", (key,)
        )
        ordinals = [ordinal for (ordinal,) in rows]
        if ordinals != list(range(len(ordinals))):
            yield f"conversation {key}: context ordinals are not 0 to {len(ordinals) - 1}"


def seq_gaps(connection: sqlite3.Connection, keys: list[int], first_seq: int | None) -> Iterator[str]:
    for key in keys:
        lowest, highest, count = connection.execute(
            "SELECT min(seq), max(seq), count(*) FROM messages WHERE conversation_id = ?", (key,)
        ).fetchone()
        first = lowest if first_seq is None else first_seq
        if count and (lowest, highest) != (first, first + count - 1):
            yield f"conversation {key}: {count} messages are numbered {lowest} to {highest}"


def uncounted(connection: sqlite3.Connection, keys: list[int]) -> Iterator[str]:
    for key in keys:
        (total,) = connection.execute(
            """
            SELECT coalesce(sum(t.tokens), 0) FROM (
              SELECT m.token_count AS tokens FROM context_items JOIN messages m USING (message_id)
              WHERE context_items.conversation_id = ?1
              UNION ALL
              SELECT s.token_count FROM context_items JOIN summaries s USING (summary_id)
              WHERE context_items.conversation_id = ?1
            ) t
            """,
            (key,),
        ).fetchone()
        entries = read_context(connection, key)
        # A damaged count may be text, which SQLite adds up as 0.
        summed = sum(entry.tokens for entry in entries if isinstance(entry.tokens, int | float))
        if summed != total:
            yield f"conversation {key}: the context's items have {summed} tokens, all together {total}"
