"""Whether summaries are made of what they may be made of.

Source: lossless-claw 0.6.3 for summaries without sources and orphans; the others are ours.
"""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from lcm.store.findings import told


def without_sources(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('%s summary %s has no source', kind, summary_id) FROM summaries s
        WHERE (?1 IS NULL OR conversation_id = ?1) AND NOT CASE kind
          WHEN 'leaf' THEN EXISTS (SELECT 1 FROM summary_messages l WHERE l.summary_id = s.summary_id)
          ELSE EXISTS (SELECT 1 FROM summary_parents p WHERE p.summary_id = s.summary_id) END
        """,
    )


def orphans(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('summary %s stands in no context and is no source', summary_id) FROM summaries s
        WHERE (?1 IS NULL OR conversation_id = ?1)
          AND NOT EXISTS (SELECT 1 FROM context_items i WHERE i.summary_id = s.summary_id)
          AND NOT EXISTS (SELECT 1 FROM retired_items r WHERE r.summary_id = s.summary_id)
          AND NOT EXISTS (SELECT 1 FROM summary_parents p WHERE p.parent_summary_id = s.summary_id)
        """,
    )


def cycles(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Take away summaries whose sources are all taken away; what is left over runs in circles."""
    edges = connection.execute(
        """
        SELECT p.summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
        WHERE ?1 IS NULL OR s.conversation_id = ?1
        """,
        (conversation,),
    ).fetchall()
    waits: dict[str, int] = {}
    users: dict[str, list[str]] = {}
    for summary_id, source in edges:
        waits[summary_id] = waits.get(summary_id, 0) + 1
        waits.setdefault(source, 0)
        users.setdefault(source, []).append(summary_id)
    free = [summary_id for summary_id, number in waits.items() if not number]
    while free:
        for user in users.get(free.pop(), ()):
            waits[user] -= 1
            if not waits[user]:
                free.append(user)
    for summary_id, number in waits.items():
        if number:
            yield f"summary {summary_id} is beneath itself"


def wrong_depths(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('%s summary %s has depth %d, its sources make it %d', kind, summary_id, depth, right) FROM (
          SELECT s.*, CASE s.kind WHEN 'leaf' THEN 0 ELSE 1 + (
            SELECT max(below.depth) FROM summary_parents p
            JOIN summaries below ON below.summary_id = p.parent_summary_id
            WHERE p.summary_id = s.summary_id) END AS right
          FROM summaries s WHERE ?1 IS NULL OR s.conversation_id = ?1
        ) WHERE depth <> right
        """,
    )


def of_other_conversations(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('summary %s of conversation %d is made of %s, of conversation %d', s.summary_id,
                      s.conversation_id, e.source, e.conversation_id)
        FROM summaries s JOIN (
          SELECT l.summary_id, m.message_key AS source, m.conversation_id
          FROM summary_messages l JOIN messages m USING (message_id)
          UNION ALL
          SELECT p.summary_id, b.summary_id, b.conversation_id
          FROM summary_parents p JOIN summaries b ON b.summary_id = p.parent_summary_id
        ) e USING (summary_id)
        WHERE e.conversation_id <> s.conversation_id AND (?1 IS NULL OR ?1 IN (e.conversation_id, s.conversation_id))
        """,
    )


def of_wrong_kind(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return told(
        connection,
        conversation,
        """
        SELECT printf('%s summary %s is made of %s', kind, summary_id, CASE kind WHEN 'leaf' THEN 'summaries'
                      ELSE 'messages' END)
        FROM summaries s WHERE (?1 IS NULL OR conversation_id = ?1) AND CASE kind
          WHEN 'leaf' THEN EXISTS (SELECT 1 FROM summary_parents p WHERE p.summary_id = s.summary_id)
          ELSE EXISTS (SELECT 1 FROM summary_messages l WHERE l.summary_id = s.summary_id) END
        """,
    )


def misnumbered(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """The sources of a summary are numbered from 0."""
    return told(
        connection,
        conversation,
        """
        SELECT DISTINCT printf('the sources of summary %s are not numbered from 0 without gaps', summary_id) FROM (
          SELECT summary_id, ordinal, row_number() OVER (PARTITION BY summary_id ORDER BY ordinal) - 1 AS right FROM (
            SELECT summary_id, ordinal FROM summary_messages UNION ALL SELECT summary_id, ordinal FROM summary_parents
          )
        ) JOIN summaries USING (summary_id)
        WHERE ordinal IS NOT right AND (?1 IS NULL OR conversation_id = ?1)
        """,
    )


def disordered(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Sources follow each other as the messages do; instants do not always rise along a transcript."""
    yield from told(
        connection,
        conversation,
        """
        SELECT printf('leaf summary %s: source %d is message %d, after message %d', summary_id, ordinal, seq, before)
        FROM (
          SELECT l.summary_id, l.ordinal, m.seq, m.conversation_id,
                 lag(m.seq) OVER (PARTITION BY l.summary_id ORDER BY l.ordinal) AS before
          FROM summary_messages l JOIN messages m USING (message_id)
        ) WHERE seq <= before AND (?1 IS NULL OR conversation_id = ?1)
        """,
    )
    spans: dict[str, tuple[int, int]] = {
        summary_id: (first, last)
        for summary_id, first, last in connection.execute(
            """
            SELECT l.summary_id, min(m.seq), max(m.seq) FROM summary_messages l JOIN messages m USING (message_id)
            GROUP BY l.summary_id
            """
        )
    }
    rows = connection.execute(
        """
        SELECT p.summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
        WHERE ?1 IS NULL OR s.conversation_id = ?1 ORDER BY s.depth, s.rowid, p.ordinal
        """,
        (conversation,),
    )
    for summary_id, edges in groupby(rows, itemgetter(0)):
        last = None
        for _, source in edges:
            if source not in spans:
                continue
            span = spans[source]
            if last is not None and span[0] <= last:
                yield f"condensed summary {summary_id}: source {source} begins at message {span[0]}, not after {last}"
            last = span[1]
            first, end = spans.get(summary_id, span)
            spans[summary_id] = min(first, span[0]), max(end, span[1])


def gaps_within(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """A leaf stands for a stretch of messages; only what was taken out of the context may lie between them."""
    return told(
        connection,
        conversation,
        """
        WITH spans AS (
          SELECT l.summary_id, m.conversation_id, min(m.seq) AS first, max(m.seq) AS last
          FROM summary_messages l JOIN messages m USING (message_id) GROUP BY l.summary_id, m.conversation_id
          HAVING max(m.seq) - min(m.seq) >= count(*)
        )
        SELECT printf('leaf summary %s: message %s lies between its messages, and is none of them', summary_id,
                      m.message_key)
        FROM spans CROSS JOIN messages m ON m.conversation_id = spans.conversation_id AND m.seq BETWEEN first AND last
        WHERE (?1 IS NULL OR m.conversation_id = ?1) AND m.hidden_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM summary_messages l
                          WHERE l.summary_id = spans.summary_id AND l.message_id = m.message_id)
          AND NOT EXISTS (SELECT 1 FROM retired_items r WHERE r.message_id = m.message_id)
        """,
    )
