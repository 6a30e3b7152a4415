"""Whether the messages and the context of a conversation are in order.

Source: lossless-claw 0.6.3 for gaps, references, token sums and duplicates; the others are ours.
"""

import sqlite3
from collections.abc import Iterator

from lcm.store.context import read_context
from lcm.store.findings import told


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


def dangling(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('conversation %d: context item %d names no %s of its own', i.conversation_id, i.ordinal,
                      i.item_type)
        FROM context_items i LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
        WHERE (?1 IS NULL OR i.conversation_id = ?1)
          AND coalesce(m.conversation_id, s.conversation_id, -1) <> i.conversation_id
        """,
    )


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


def duplicates(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('conversation %d: %s %s stands %d times in the context', conversation_id, item_type,
                      coalesce(message_id, summary_id), count(*))
        FROM context_items WHERE ?1 IS NULL OR conversation_id = ?1
        GROUP BY conversation_id, item_type, message_id, summary_id HAVING count(*) > 1
        """,
    )


_SPANS = """
WITH RECURSIVE beneath (ordinal, conversation_id, summary_id) AS (
  SELECT ordinal, conversation_id, summary_id FROM context_items
  WHERE summary_id IS NOT NULL AND (?1 IS NULL OR conversation_id = ?1)
  UNION
  SELECT b.ordinal, b.conversation_id, p.parent_summary_id FROM beneath b JOIN summary_parents p USING (summary_id)
),
spans (conversation_id, ordinal, first, last) AS (
  SELECT i.conversation_id, i.ordinal, m.seq, m.seq FROM context_items i JOIN messages m USING (message_id)
  WHERE ?1 IS NULL OR i.conversation_id = ?1
  UNION ALL
  SELECT b.conversation_id, b.ordinal, min(m.seq), max(m.seq)
  FROM beneath b JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
  GROUP BY b.conversation_id, b.ordinal
)
"""
"""The seqs that each context item stands for."""


def out_of_order(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        f"""
        {_SPANS}
        SELECT printf('conversation %d: context item %d begins at message %d, before the end of the one before it',
                      conversation_id, ordinal, first)
        FROM (SELECT *, lag(last) OVER (PARTITION BY conversation_id ORDER BY ordinal) AS before FROM spans)
        WHERE first <= before
        """,  # noqa: S608 (our own constants)
    )


def unreachable(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        WITH RECURSIVE roots AS (
          SELECT message_id, summary_id FROM context_items UNION ALL SELECT message_id, summary_id FROM retired_items
        ),
        seen (summary_id) AS (
          SELECT summary_id FROM roots WHERE summary_id IS NOT NULL
          UNION
          SELECT p.parent_summary_id FROM seen JOIN summary_parents p USING (summary_id)
        ),
        reached (message_id) AS (
          SELECT message_id FROM roots WHERE message_id IS NOT NULL
          UNION
          SELECT l.message_id FROM seen JOIN summary_messages l USING (summary_id)
        )
        SELECT printf('message %s is reached from no context item', message_key) FROM messages
        WHERE (?1 IS NULL OR conversation_id = ?1) AND hidden_at IS NULL
          AND message_id NOT IN (SELECT message_id FROM reached)
        """,
    )


def retired_dangling(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('conversation %d: an item that left the context names no %s of its own', r.conversation_id,
                      r.item_type)
        FROM retired_items r LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
        WHERE (?1 IS NULL OR r.conversation_id = ?1)
          AND coalesce(m.conversation_id, s.conversation_id, -1) <> r.conversation_id
        """,
    )


def hidden_in_use(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Messages are hidden by taking them out of the context; one that a summary stands for is never hidden."""
    return told(
        connection,
        conversation,
        """
        SELECT printf('message %s is hidden, and stands in %s', m.message_key, used.place)
        FROM messages m JOIN (
          SELECT message_id, 'the context' AS place FROM context_items WHERE message_id IS NOT NULL
          UNION ALL
          SELECT message_id, 'summary ' || summary_id FROM summary_messages
        ) used USING (message_id)
        WHERE m.hidden_at IS NOT NULL AND (?1 IS NULL OR m.conversation_id = ?1)
        """,
    )


def standing_twice(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """An item stands in the context, left it by a rule, or went into one summary: one of these, once."""
    return told(
        connection,
        conversation,
        """
        WITH places (item, message_id, summary_id, place) AS (
          SELECT DISTINCT item_type, message_id, summary_id, 'the context' FROM context_items
          UNION ALL
          SELECT DISTINCT item_type, message_id, summary_id, 'what left the context' FROM retired_items
          UNION ALL
          SELECT 'message', message_id, NULL, 'summary ' || summary_id FROM summary_messages
          UNION ALL
          SELECT 'summary', NULL, parent_summary_id, 'summary ' || summary_id FROM summary_parents
        )
        SELECT printf('%s %s stands in %s', p.item, coalesce(m.message_key, p.summary_id), group_concat(place, ' and '))
        FROM places p LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
        WHERE ?1 IS NULL OR coalesce(m.conversation_id, s.conversation_id) = ?1
        GROUP BY p.item, p.message_id, p.summary_id HAVING count(*) > 1
        """,
    )


def unnamed(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('conversation %d has no session key: nobody can ask for it', conversation_id) FROM conversations
        WHERE session_key IS NULL AND (?1 IS NULL OR conversation_id = ?1)
        """,
    )
