"""Whether summaries are made of what they may be made of; what one query can tell is in `checks.sql`."""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from lcm.store.findings import told


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


def disordered(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Sources follow each other as the messages do; instants do not always rise along a transcript."""
    yield from told(connection, conversation, "sources_in_order")
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
