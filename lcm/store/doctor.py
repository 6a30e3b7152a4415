"""Whether a store is what its rules say, found without changing anything.

Source: lossless-claw 0.6.3 for the eight checks of its integrity scan and for the marks of summaries that were cut;
the others are ours.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lcm.store.context import read_context
from lcm.store.derived import FULL_TEXT, misstated, words_out_of_step
from lcm.tokens import utf16_length

Status = Literal["pass", "warn", "fail"]

FALLBACK_MARK = "[LCM fallback summary; truncated for context management]"
_CUT_MARK = "[Truncated from "
_CUT_WITHIN, _FALLBACK_WITHIN = 40, 80  # UTF-16 units from the end


class Check(NamedTuple):
    """What one rule found."""

    name: str
    status: Status
    findings: tuple[str, ...] = ()
    is_derived: bool = False
    """What is wrong can be worked out anew from what is not."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """How messages and context items are counted."""

    first_seq: int | None = None
    """Of a conversation; None = whatever its lowest is: from there on there must be no gap."""
    has_dense_ordinals: bool = False
    """Context items are numbered from 0 without gaps; ours leave room between them."""


def scan(
    connection: sqlite3.Connection, conversation: int | None = None, numbering: Numbering | None = None
) -> list[Check]:
    """Run every check; each is independent of the others.

    Args:
        connection: to a store whose schema is up to date.
        conversation: its integer key; None = all, and what concerns the file as a whole.
        numbering: what seqs and ordinals must be; None = as this program writes them.
    """
    keys = [conversation] if conversation is not None else _conversations(connection)
    numbered = numbering or Numbering()
    checks = [
        _check("conversation_exists", _unknown(connection, conversation)),
        _check("context_items_contiguous", _context_gaps(connection, keys, numbered)),
        _check("context_items_valid_refs", _dangling(connection, conversation)),
        _check("summaries_have_lineage", _without_sources(connection, conversation)),
        _check("no_orphan_summaries", _orphans(connection, conversation), bad="warn"),
        _check("context_token_consistency", _uncounted(connection, keys)),
        _check("message_seq_contiguous", _seq_gaps(connection, keys, numbered)),
        _check("no_duplicate_context_refs", _duplicates(connection, conversation)),
        _check("context_in_order", _out_of_order(connection, conversation)),
        _check("messages_reachable", _unreachable(connection, conversation)),
        _check("summaries_acyclic", _cycles(connection, conversation)),
        _check("summary_depths", _wrong_depths(connection, conversation)),
        _check("tokens_not_negative", _negative(connection, conversation)),
        _check("summary_totals", misstated(connection, conversation), is_derived=True),
        _check("summaries_whole", marked_summaries(connection, conversation), bad="warn"),
    ]
    if conversation is None:
        checks += [
            _check("pages", _pages(connection)),
            _check("foreign_keys", _references(connection)),
            *(_check(name, words_out_of_step(connection, name), is_derived=True) for name in FULL_TEXT),
        ]
    return checks


def mark_of(content: str) -> Literal["old", "new", "fallback"] | None:
    """How a summary's words show that they were cut rather than summarised; None: they do not."""
    if content.startswith(FALLBACK_MARK):
        return "old"
    for mark, within, kind in ((_CUT_MARK, _CUT_WITHIN, "new"), (FALLBACK_MARK, _FALLBACK_WITHIN, "fallback")):
        start = content.rfind(mark)
        if start >= 0 and utf16_length(content[start:]) < within:
            return kind  # type: ignore[return-value]  # one of the two above
    return None


def marked_summaries(connection: sqlite3.Connection, conversation: int | None = None) -> Iterator[str]:
    rows = connection.execute(
        """
        SELECT summary_id, content FROM summaries
        WHERE (?1 IS NULL OR conversation_id = ?1) AND (instr(content, ?2) OR instr(content, ?3)) ORDER BY rowid
        """,
        (conversation, _CUT_MARK, FALLBACK_MARK),
    )
    for summary_id, content in rows:
        if kind := mark_of(content):
            yield f"summary {summary_id} was cut ({kind})"


def _check(name: str, findings: Iterator[str], *, bad: Status = "fail", is_derived: bool = False) -> Check:
    try:
        found = tuple(findings)
    except sqlite3.DatabaseError as error:
        return Check(name, "fail", (f"cannot be read: {error}",), is_derived)
    return Check(name, bad if found else "pass", found, is_derived)


def _conversations(connection: sqlite3.Connection) -> list[int]:
    return [key for (key,) in connection.execute("SELECT conversation_id FROM conversations ORDER BY conversation_id")]


def _unknown(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    if conversation is not None and conversation not in _conversations(connection):
        yield f"there is no conversation {conversation}"


def _context_gaps(connection: sqlite3.Connection, keys: list[int], numbering: Numbering) -> Iterator[str]:
    for key in keys if numbering.has_dense_ordinals else ():
        rows = connection.execute(
            "SELECT ordinal FROM context_items WHERE conversation_id = ? ORDER BY ordinal", (key,)
        )
        ordinals = [ordinal for (ordinal,) in rows]
        if ordinals != list(range(len(ordinals))):
            yield f"conversation {key}: context ordinals are not 0 to {len(ordinals) - 1}"


def _seq_gaps(connection: sqlite3.Connection, keys: list[int], numbering: Numbering) -> Iterator[str]:
    for key in keys:
        lowest, highest, count = connection.execute(
            "SELECT min(seq), max(seq), count(*) FROM messages WHERE conversation_id = ?", (key,)
        ).fetchone()
        first = lowest if numbering.first_seq is None else numbering.first_seq
        if count and (lowest, highest) != (first, first + count - 1):
            yield f"conversation {key}: {count} messages are numbered {lowest} to {highest}"


def _dangling(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
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


def _without_sources(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
        connection,
        conversation,
        """
        SELECT printf('%s summary %s has no source', kind, summary_id) FROM summaries s
        WHERE (?1 IS NULL OR conversation_id = ?1) AND NOT CASE kind
          WHEN 'leaf' THEN EXISTS (SELECT 1 FROM summary_messages l WHERE l.summary_id = s.summary_id)
          ELSE EXISTS (SELECT 1 FROM summary_parents p WHERE p.summary_id = s.summary_id) END
        """,
    )


def _orphans(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
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


def _uncounted(connection: sqlite3.Connection, keys: list[int]) -> Iterator[str]:
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
        summed = sum(entry.tokens or 0 for entry in read_context(connection, key))
        if summed != total:
            yield f"conversation {key}: the context's items have {summed} tokens, all together {total}"


def _duplicates(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
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


def _out_of_order(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
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


def _unreachable(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
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


def _cycles(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
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


def _wrong_depths(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
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


def _negative(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    return _told(
        connection,
        conversation,
        """
        SELECT printf('message %s has %d tokens', message_key, token_count) FROM messages
        WHERE token_count < 0 AND (?1 IS NULL OR conversation_id = ?1)
        UNION ALL
        SELECT printf('summary %s has %d tokens', summary_id, token_count) FROM summaries
        WHERE token_count < 0 AND (?1 IS NULL OR conversation_id = ?1)
        """,
    )


def _pages(connection: sqlite3.Connection) -> Iterator[str]:
    for (said,) in connection.execute("PRAGMA integrity_check"):
        if said != "ok":
            yield str(said)


def _references(connection: sqlite3.Connection) -> Iterator[str]:
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} names a row of {parent} that is not there"


def _told(connection: sqlite3.Connection, conversation: int | None, sql: str) -> Iterator[str]:
    for (finding,) in connection.execute(sql, (conversation,)):
        yield str(finding)
