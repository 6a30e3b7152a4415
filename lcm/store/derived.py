"""What a store keeps though it follows from the rest: full-text tables, what the parts of messages say, admission's
scores by message, and the totals of summaries."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from lcm.store.messages import decode_message, read_rows
from lcm.transcript.passages import parts_text


class FullTextTable(NamedTuple):
    """A full-text table: the table that it follows, that one's key, the column that holds it here, and the columns
    that both have; a row without words in `text` stands in none."""

    base: str
    key: str
    own: str
    columns: str
    text: str

    @property
    def worded(self) -> str:
        """The rows that it holds, as they should be."""
        return (
            f"SELECT {self.key}, {self.columns} FROM {self.base} "  # noqa: S608 (our own constants)
            f"WHERE trim({self.text}, char(9, 10, 11, 12, 13, 32)) <> ''"
        )


FULL_TEXT = {
    "messages_fts": FullTextTable("messages", "message_id", "rowid", "content, parts_text", "full_text"),
    "summaries_fts": FullTextTable("summaries", "summary_id", "summary_id", "content", "content"),
    "summaries_fts_cjk": FullTextTable("summaries", "summary_id", "summary_id", "content", "content"),
}


class SummaryTotals(NamedTuple):
    """The totals of a summary, worked out from its sources."""

    earliest_at: str | None
    latest_at: str | None
    descendant_count: int
    descendant_token_count: int
    source_message_token_count: int


def words_out_of_step(table: str, connection: sqlite3.Connection, _conversation: int | None = None) -> Iterator[str]:
    """Tell which rows a full-text table lacks, has too many, or has with other words; and whether it is damaged."""
    follows = FULL_TEXT[table]
    connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")  # noqa: S608 (our own constants)
    # By a key of text each look-up would read the whole full-text table.
    found = connection.execute(f"SELECT {follows.own}, {follows.columns} FROM {table}")  # noqa: S608
    kept: dict[object, list[int]] = {}
    for item_id, *words in found:
        kept.setdefault(item_id, []).append(hash(tuple(words)))
    for item_id, *words in connection.execute(follows.worded):
        held = kept.pop(item_id, [])
        if held != [hash(tuple(words))]:
            yield f"{table}: {_named(table, item_id)} {'has other words' if held else 'is missing'}"
    for item_id in kept:
        yield f"{table}: {_named(table, item_id)} is not in {follows.base}"


def _named(table: str, item_id: object) -> str:
    """An item by the id that `lcm grep` and `describe` know it by."""
    return f"msg#{item_id}" if FULL_TEXT[table].base == "messages" else str(item_id)


def rebuild_words(connection: sqlite3.Connection, table: str) -> None:
    """Make a full-text table anew, inside the caller's transaction."""
    follows = FULL_TEXT[table]
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.execute(f"DROP TABLE {table}")
    connection.execute(sql)
    connection.execute(f"INSERT INTO {table} ({follows.own}, {follows.columns}) {follows.worded}")


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


def rebuild_scores(connection: sqlite3.Connection) -> None:
    """Make the scores by message anew, inside the caller's transaction."""
    connection.execute("DELETE FROM admission_scores")
    connection.execute(
        """
        INSERT INTO admission_scores (message_key, decision_id, score)
        SELECT DISTINCT s.value, d.decision_id, d.score
        FROM decisions d, json_each(d.candidate, '$.source_message_ids') s WHERE d.score IS NOT NULL
        """
    )


def misstated(connection: sqlite3.Connection, conversation: int | None = None) -> Iterator[str]:
    """Tell which summaries' totals are not those of their sources."""
    for summary_id, is_now, right in _compared(connection, conversation):
        wrong = [name for name, old, new in zip(SummaryTotals._fields, is_now, right, strict=True) if old != new]
        yield f"summary {summary_id}: {', '.join(wrong)}"


def recompute_totals(connection: sqlite3.Connection) -> int:
    """Work the totals of summaries out anew, inside the caller's transaction; returns how many were wrong."""
    wrong = list(_compared(connection, None))
    connection.executemany(
        """
        UPDATE summaries SET earliest_at = ?, latest_at = ?, descendant_count = ?, descendant_token_count = ?,
                             source_message_token_count = ? WHERE summary_id = ?
        """,
        [(*right, summary_id) for summary_id, _, right in wrong],
    )
    return len(wrong)


def _compared(
    connection: sqlite3.Connection, conversation: int | None
) -> Iterator[tuple[str, SummaryTotals, SummaryTotals]]:
    """Summaries with totals that are wrong, and the right ones; one without sources is left alone."""
    leaves = {
        row[0]: SummaryTotals(row[1], row[2], 0, 0, row[3])
        for row in connection.execute(
            """
            SELECT l.summary_id, min(m.created_at), max(m.created_at), sum(max(m.token_count, 0))
            FROM summary_messages l JOIN messages m USING (message_id) JOIN summaries s USING (summary_id)
            WHERE ?1 IS NULL OR s.conversation_id = ?1 GROUP BY l.summary_id
            """,
            (conversation,),
        )
    }
    sources: dict[str, list[str]] = {}
    for summary_id, source in connection.execute(
        """
        SELECT p.summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
        WHERE ?1 IS NULL OR s.conversation_id = ?1
        """,
        (conversation,),
    ):
        sources.setdefault(summary_id, []).append(source)
    rows = connection.execute(
        """
        SELECT summary_id, token_count, created_at, earliest_at, latest_at, descendant_count, descendant_token_count,
               source_message_token_count
        FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY depth, rowid
        """,
        (conversation,),
    )
    known: dict[str, tuple[int, str, SummaryTotals]] = {}
    for summary_id, tokens, created_at, *stored in rows:
        is_now = SummaryTotals(*stored)
        below = [known[source] for source in sources.get(summary_id, ()) if source in known]
        right = leaves.get(summary_id) or (_added_up(below) if below else is_now)
        known[summary_id] = (tokens, created_at, right)
        if is_now != right:
            yield summary_id, is_now, right


def _added_up(sources: list[tuple[int, str, SummaryTotals]]) -> SummaryTotals:
    return SummaryTotals(
        min(totals.earliest_at or created_at for _, created_at, totals in sources),
        max(totals.latest_at or created_at for _, created_at, totals in sources),
        sum(totals.descendant_count + 1 for *_, totals in sources),
        sum(tokens + totals.descendant_token_count for tokens, _, totals in sources),
        sum(totals.source_message_token_count for *_, totals in sources),
    )
