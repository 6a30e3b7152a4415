"""The summary DAG as rows."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime

import polars as pl

from lcm.clock import format_instant, parse_instant
from lcm.encoding import optional_instant, to_json, well_formed
from lcm.errors import StoreError
from lcm.records.summary import Summary
from lcm.store.frames import INSTANT, frame

SUMMARY_SCHEMA: dict[str, pl.DataType] = {
    "summary_id": pl.String(),
    "conversation_id": pl.String(),
    "kind": pl.String(),
    "depth": pl.Int64(),
    "token_count": pl.Int64(),
    "earliest_at": INSTANT,
    "latest_at": INSTANT,
    "descendant_count": pl.Int64(),
    "descendant_token_count": pl.Int64(),
    "source_message_token_count": pl.Int64(),
    "sources": pl.Int64(),
    "model": pl.String(),
    "level": pl.String(),
    "method": pl.String(),
    "confidence": pl.Float64(),
    "created_at": INSTANT,
}
"""The columns of `Store.summary_frame`; `sources` counts the messages or summaries that one was made of."""

COMPACTION_SCHEMA: dict[str, pl.DataType] = {
    "conversation_id": pl.String(),
    "happened_at": INSTANT,
    "event": pl.String(),
    "level": pl.String(),
    "method": pl.String(),
    "tokens_before": pl.Int64(),
    "tokens_after": pl.Int64(),
    "summary_id": pl.String(),
    "detail": pl.String(),
}
"""The columns of `Store.compactions`: what compaction did, in order. `event` is leaf, condensed, or what went wrong."""

EDGE_SCHEMA: dict[str, pl.DataType] = {
    "summary_id": pl.String(),
    "source_id": pl.String(),
    "is_message": pl.Boolean(),
    "tokens": pl.Int64(),
}
"""The columns of `Store.edges`: each source of each summary, with the tokens that the source costs."""

_COLUMNS = """
    s.summary_id, c.session_key, s.kind, s.depth, s.content, s.token_count, s.created_at, s.earliest_at, s.latest_at,
    s.descendant_count, s.descendant_token_count, s.source_message_token_count, s.file_ids, s.model, s.level, s.method,
    s.confidence
"""
_BATCH = 500


def insert_summary(connection: sqlite3.Connection, conversation: int, summary: Summary) -> None:
    """Store a summary with its edges, inside the caller's transaction.

    Raises:
        StoreError: if its id is taken or a source is unknown.
    """
    row = (
        summary.summary_id,
        conversation,
        summary.kind,
        summary.depth,
        well_formed(summary.content),
        summary.token_count,
        optional_instant(summary.earliest_at),
        optional_instant(summary.latest_at),
        summary.descendant_count,
        summary.descendant_token_count,
        summary.source_message_token_count,
        format_instant(summary.created_at),
        to_json(list(summary.file_ids)),
        summary.model,
        summary.level,
        summary.method,
        summary.confidence,
    )
    try:
        connection.execute(
            """
            INSERT INTO summaries (summary_id, conversation_id, kind, depth, content, token_count, earliest_at,
                                   latest_at, descendant_count, descendant_token_count, source_message_token_count,
                                   created_at, file_ids, model, level, method, confidence)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            row,
        )
    except sqlite3.IntegrityError as error:
        raise StoreError(f"summary {summary.summary_id!r} cannot be stored: {error}") from error
    table, source = (
        ("summary_messages (summary_id, message_id, ordinal) SELECT ?1, message_id, ?3 FROM messages", "message_key")
        if summary.kind == "leaf"
        else (
            "summary_parents (summary_id, parent_summary_id, ordinal) SELECT ?1, summary_id, ?3 FROM summaries",
            "summary_id",
        )
    )
    added = connection.executemany(
        f"INSERT INTO {table} WHERE {source} = ?2",
        [(summary.summary_id, source_id, i) for i, source_id in enumerate(summary.source_ids)],
    ).rowcount
    if added != len(summary.source_ids):
        raise StoreError(f"summary {summary.summary_id!r} names a source that is not in the store")


def is_stored(connection: sqlite3.Connection, summary_id: str) -> bool:
    return connection.execute("SELECT 1 FROM summaries WHERE summary_id = ?", (summary_id,)).fetchone() is not None


def summaries_by_id(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Summary]:
    """Read summaries with their sources; an unknown id is left out."""
    found: dict[str, Summary] = {}
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        rows = connection.execute(
            f"""
            SELECT {_COLUMNS} FROM summaries s JOIN conversations c USING (conversation_id)
            WHERE s.summary_id IN ({", ".join("?" * len(some))})
            """,  # noqa: S608 (our own constants)
            some,
        ).fetchall()
        sources = _sources(connection, [row[0] for row in rows])
        found.update((row[0], _decode(row, sources.get(row[0], ()))) for row in rows)
    return found


def read_summaries(connection: sqlite3.Connection, conversation: int | None) -> list[Summary]:
    """Read the summaries of one conversation, or of all, in the order of making."""
    rows = connection.execute(
        "SELECT summary_id FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY rowid", (conversation,)
    )
    ids = [summary_id for (summary_id,) in rows]
    found = summaries_by_id(connection, ids)
    return [found[summary_id] for summary_id in ids]


def count_folded(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many summaries and how many protected messages there are: neither is ever taken away."""
    found: tuple[int, int] = connection.execute(
        "SELECT (SELECT count(*) FROM summaries), (SELECT count(*) FROM guidance_shards)"
    ).fetchone()
    return found


def undocumented(connection: sqlite3.Connection) -> list[str]:
    """The ids of the summaries of which there is no document, in the order of making."""
    rows = connection.execute(
        """
        SELECT summary_id FROM summaries s
        WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.document_id = s.summary_id) ORDER BY rowid
        """
    )
    return [summary_id for (summary_id,) in rows]


def summary_frame(connection: sqlite3.Connection) -> pl.DataFrame:
    read = connection.execute(
        """
        SELECT s.summary_id, c.session_key, s.kind, s.depth, s.token_count, s.earliest_at, s.latest_at,
               s.descendant_count, s.descendant_token_count, s.source_message_token_count,
               (SELECT count(*) FROM summary_messages l WHERE l.summary_id = s.summary_id)
                 + (SELECT count(*) FROM summary_parents p WHERE p.summary_id = s.summary_id),
               s.model, s.level, s.method, s.confidence, s.created_at
        FROM summaries s JOIN conversations c USING (conversation_id) ORDER BY s.rowid
        """
    )
    return frame(read, SUMMARY_SCHEMA)


def edge_frame(connection: sqlite3.Connection, conversation: int) -> pl.DataFrame:
    read = connection.execute(
        """
        SELECT summary_id, source_id, is_message, tokens FROM (
          SELECT l.summary_id, m.message_key AS source_id, 1 AS is_message, m.token_count AS tokens, l.ordinal
          FROM messages m JOIN summary_messages l USING (message_id) WHERE m.conversation_id = ?1
          UNION ALL
          SELECT p.summary_id, s.summary_id, 0, s.token_count, p.ordinal
          FROM summaries s JOIN summary_parents p ON p.parent_summary_id = s.summary_id WHERE s.conversation_id = ?1
        ) ORDER BY summary_id, ordinal
        """,
        (conversation,),
    )
    edges = frame(read, {**EDGE_SCHEMA, "is_message": pl.Int64()})
    return edges.with_columns(pl.col("is_message").cast(pl.Boolean))


def add_compaction(
    connection: sqlite3.Connection,
    conversation: int,
    happened_at: datetime,
    event: str,
    level: str = "",
    method: str = "",
    tokens_before: int = 0,
    tokens_after: int = 0,
    summary_id: str | None = None,
    detail: str = "",
) -> None:
    """Keep one event of compaction."""
    connection.execute(
        """
        INSERT INTO compaction_events (conversation_id, happened_at, event, level, method, tokens_before, tokens_after,
                                       summary_id, detail)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            conversation,
            format_instant(happened_at),
            event,
            level,
            method,
            tokens_before,
            tokens_after,
            summary_id,
            well_formed(detail),
        ),
    )


def last_detail(connection: sqlite3.Connection, conversation: int, event: str) -> str | None:
    """What was noted with the newest compaction event of that name."""
    row: tuple[str] | None = connection.execute(
        """
        SELECT detail FROM compaction_events WHERE conversation_id = ? AND event = ? ORDER BY event_id DESC LIMIT 1
        """,
        (conversation, event),
    ).fetchone()
    return row and row[0]


def compaction_frame(connection: sqlite3.Connection) -> pl.DataFrame:
    read = connection.execute(
        """
        SELECT c.session_key, e.happened_at, e.event, e.level, e.method, e.tokens_before, e.tokens_after, e.summary_id,
               e.detail
        FROM compaction_events e JOIN conversations c USING (conversation_id) ORDER BY e.event_id
        """
    )
    return frame(read, COMPACTION_SCHEMA)


def _sources(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    marks = ", ".join("?" * len(ids))
    found: dict[str, list[str]] = {}
    rows: Iterator[tuple[str, str]] = connection.execute(
        f"""
        SELECT summary_id, source FROM (
          SELECT l.summary_id, m.message_key AS source, l.ordinal
          FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id IN ({marks})
          UNION ALL
          SELECT summary_id, parent_summary_id, ordinal FROM summary_parents WHERE summary_id IN ({marks})
        ) ORDER BY summary_id, ordinal
        """,  # noqa: S608 (our own constants)
        (*ids, *ids),
    )
    for summary_id, source in rows:
        found.setdefault(summary_id, []).append(source)
    return {summary_id: tuple(sources) for summary_id, sources in found.items()}


def _decode(row: tuple[object, ...], sources: tuple[str, ...]) -> Summary:
    (summary_id, key, kind, depth, content, tokens, created, earliest, latest, count, below, source_tokens, files) = (
        row[:13]
    )
    model, level, method, confidence = row[13:]
    return Summary(
        summary_id=summary_id,  # type: ignore[arg-type]  # the table's columns
        conversation_id=key,  # type: ignore[arg-type]
        kind=kind,  # type: ignore[arg-type]
        depth=depth,  # type: ignore[arg-type]
        content=content,  # type: ignore[arg-type]
        token_count=tokens,  # type: ignore[arg-type]
        created_at=_instant(summary_id, "created_at", created),
        earliest_at=None if earliest is None else _instant(summary_id, "earliest_at", earliest),
        latest_at=None if latest is None else _instant(summary_id, "latest_at", latest),
        descendant_count=count,  # type: ignore[arg-type]
        descendant_token_count=below,  # type: ignore[arg-type]
        source_message_token_count=source_tokens,  # type: ignore[arg-type]
        source_ids=sources,
        file_ids=_file_ids(summary_id, files),
        model=model,  # type: ignore[arg-type]
        level=level,  # type: ignore[arg-type]
        method=method,  # type: ignore[arg-type]
        confidence=confidence,  # type: ignore[arg-type]
    )


def _instant(summary_id: object, column: str, value: object) -> datetime:
    try:
        return parse_instant(str(value))
    except ValueError as error:
        raise _unreadable(summary_id, column, value) from error


def _file_ids(summary_id: object, value: object) -> tuple[str, ...]:
    try:
        ids = json.loads(str(value))
    except (RecursionError, ValueError) as error:
        raise _unreadable(summary_id, "file_ids", value) from error
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise _unreadable(summary_id, "file_ids", value)
    return tuple(ids)


def _unreadable(summary_id: object, column: str, value: object) -> StoreError:
    return StoreError(f"summary {summary_id!r} is damaged: its {column} is {value!r:.80}; `lcm doctor` names all such")
