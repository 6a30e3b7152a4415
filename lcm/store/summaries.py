"""The summary DAG as rows, and who is made of whom: read upwards and downwards, without its words."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import polars as pl

from lcm.clock import format_instant, parse_instant
from lcm.encoding import optional_instant, to_json, well_formed
from lcm.errors import StoreError
from lcm.records.conversation import LargeFile
from lcm.records.summary import Summary
from lcm.store.conversations import conversation_row
from lcm.store.sqlite import INSTANT, LISTED, add_row, column, frame, selected, value

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

_COLUMNS = (
    "summary_id", "kind", "depth", "content", "token_count", "created_at", "earliest_at", "latest_at",
    "descendant_count", "descendant_token_count", "source_message_token_count", "file_ids", "model", "level", "method",
    "confidence",
)  # fmt: skip
"""Of `summaries`, named as the fields of a `Summary`."""


def insert_summary(connection: sqlite3.Connection, conversation: int, summary: Summary) -> None:
    """Store a summary with its edges, inside the caller's transaction.

    Raises:
        StoreError: if its id is taken or a source is unknown.
    """
    row = {name: getattr(summary, name) for name in _COLUMNS} | {
        "conversation_id": conversation,
        "content": well_formed(summary.content),
        "created_at": format_instant(summary.created_at),
        "earliest_at": optional_instant(summary.earliest_at),
        "latest_at": optional_instant(summary.latest_at),
        "file_ids": to_json(summary.file_ids),
    }
    try:
        add_row(connection, "summaries", row)
    except sqlite3.IntegrityError as error:
        raise StoreError(f"summary {summary.summary_id!r} cannot be stored: {error}") from error
    of_leaf = """
        INSERT INTO summary_messages (summary_id, message_id, ordinal)
        SELECT ?1, message_id, ?3 FROM messages WHERE message_key = ?2
    """
    of_condensed = """
        INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
        SELECT ?1, summary_id, ?3 FROM summaries WHERE summary_id = ?2
    """
    edges = [(summary.summary_id, source_id, i) for i, source_id in enumerate(summary.source_ids)]
    if connection.executemany(of_leaf if summary.kind == "leaf" else of_condensed, edges).rowcount != len(edges):
        raise StoreError(f"summary {summary.summary_id!r} names a source that is not in the store")


def is_summary(connection: sqlite3.Connection, summary_id: str) -> bool:
    """Whether a summary of that id is stored."""
    return bool(value(connection, "SELECT count(*) FROM summaries WHERE summary_id = ?", summary_id))


def summaries_by_id(connection: sqlite3.Connection, summary_ids: Sequence[str]) -> dict[str, Summary]:
    """Read summaries with their sources, by id; an unknown one is left out.

    Raises:
        StoreError: if a row is damaged.
    """
    wanted = to_json(list(summary_ids))
    rows = connection.execute(
        f"""
        SELECT c.session_key, {", ".join(f"s.{name}" for name in _COLUMNS)}
        FROM summaries s JOIN conversations c USING (conversation_id) WHERE s.summary_id {LISTED}
        """,  # noqa: S608 (our own constants)
        (wanted,),
    ).fetchall()
    edges = connection.execute(
        f"""
        SELECT summary_id, source FROM (
          SELECT l.summary_id, m.message_key AS source, l.ordinal
          FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id {LISTED}
          UNION ALL
          SELECT summary_id, parent_summary_id, ordinal FROM summary_parents WHERE summary_id {LISTED}
        ) ORDER BY summary_id, ordinal
        """,  # noqa: S608 (our own constants)
        (wanted, wanted),
    )
    sources = {one: tuple(source for _, source in edges) for one, edges in groupby(edges, itemgetter(0))}
    read = (_decoded(key, dict(zip(_COLUMNS, row, strict=True)), sources) for key, *row in rows)
    return {summary.summary_id: summary for summary in read}


def read_summaries(connection: sqlite3.Connection, conversation_id: str | None = None) -> list[Summary]:
    """Read the summaries of one conversation, or of all, in the order of making."""
    conversation = None if conversation_id is None else conversation_row(connection, conversation_id)
    sql = "SELECT summary_id FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY rowid"
    ids = column(connection, sql, conversation)
    found = summaries_by_id(connection, ids)
    return [found[summary_id] for summary_id in ids]


def count_folded(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many summaries and how many protected messages there are: neither is ever taken away."""
    summaries, shards = "SELECT count(*) FROM summaries", "SELECT count(*) FROM guidance_shards"
    return value(connection, summaries), value(connection, shards)


def undocumented(connection: sqlite3.Connection) -> list[str]:
    """The ids of the summaries of which there is no document, in the order of making."""
    sql = """
        SELECT summary_id FROM summaries s
        WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.document_id = s.summary_id) ORDER BY rowid
    """
    return column(connection, sql)


def summary_frame(connection: sqlite3.Connection) -> pl.DataFrame:
    """Read `SUMMARY_SCHEMA`, in the order of making."""
    sources = """
        (SELECT count(*) FROM summary_messages l WHERE l.summary_id = s.summary_id)
          + (SELECT count(*) FROM summary_parents p WHERE p.summary_id = s.summary_id)
    """
    columns = selected(SUMMARY_SCHEMA, {"conversation_id": "c.session_key", "sources": sources}, "s")
    of = "FROM summaries s JOIN conversations c USING (conversation_id) ORDER BY s.rowid"
    return frame(connection.execute(f"SELECT {columns} {of}"), SUMMARY_SCHEMA)


def edge_frame(connection: sqlite3.Connection, conversation: int) -> pl.DataFrame:
    """Read `EDGE_SCHEMA`: what each summary of a conversation was made of, in order."""
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
    return frame(read, EDGE_SCHEMA)


def add_compaction(
    connection: sqlite3.Connection,
    conversation: int,
    happened_at: datetime,
    event: str,
    detail: str = "",
    summary: Summary | None = None,
    tokens_before: int = 0,
    tokens_after: int = 0,
) -> None:
    """Keep one event of compaction: the making of a summary, or why it stopped or failed without one."""
    row = {
        "conversation_id": conversation,
        "happened_at": format_instant(happened_at),
        "event": event,
        "level": summary.level if summary else "",
        "method": summary.method if summary else "",
        "tokens_before": tokens_before,
        "tokens_after": tokens_after,
        "summary_id": summary.summary_id if summary else None,
        "detail": well_formed(detail),
    }
    add_row(connection, "compaction_events", row)


def last_detail(connection: sqlite3.Connection, conversation: int, event: str) -> str | None:
    """Read the detail of the newest compaction event of that name."""
    sql = "SELECT detail FROM compaction_events WHERE conversation_id = ? AND event = ? ORDER BY event_id DESC LIMIT 1"
    found: str | None = value(connection, sql, conversation, event)
    return found


def compaction_frame(connection: sqlite3.Connection) -> pl.DataFrame:
    """Read `COMPACTION_SCHEMA`: what compaction did, in order."""
    columns = selected(COMPACTION_SCHEMA, {"conversation_id": "c.session_key"}, "e")
    of = "FROM compaction_events e JOIN conversations c USING (conversation_id) ORDER BY e.event_id"
    return frame(connection.execute(f"SELECT {columns} {of}"), COMPACTION_SCHEMA)


def _decoded(conversation_id: str, row: dict[str, Any], sources: Mapping[str, tuple[str, ...]]) -> Summary:
    for name, read in _READ.items():
        try:
            row[name] = None if row[name] is None else read(str(row[name]))
        except (RecursionError, ValueError) as error:
            broken = f"summary {row['summary_id']!r} is damaged: its {name} is {row[name]!r:.80}"
            raise StoreError(f"{broken}; `lcm doctor` names all such") from error
    return Summary(**row, conversation_id=conversation_id, source_ids=sources.get(row["summary_id"], ()))


def _read_ids(text: str) -> tuple[str, ...]:
    ids = json.loads(text)
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise ValueError("no list of ids")
    return tuple(ids)


_READ: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("created_at", "earliest_at", "latest_at"), parse_instant),
    "file_ids": _read_ids,
}


Direction = Literal["sources", "derived"]


class SourceMessage(NamedTuple):
    """A message as recall reads it."""

    number: int
    message_id: str
    conversation: int
    role: str
    text: str
    """Its words, and what its parts say besides."""
    tokens: int
    """Of the text, as counted when it was stored; 0 where its parts say more than was counted."""
    created_at: datetime


class LineagePlace(NamedTuple):
    """A summary at its place in a walk over the summary DAG."""

    summary_id: str
    steps: int
    path: str
    """Four digits a step, joined by dots: the position among the sources of the condensed summary of that step."""
    next_ids: tuple[str, ...]
    """The summaries that follow it in the direction of the walk, in order; none where the walk ends."""


class StoredFile(NamedTuple):
    """A large file, and the message that holds its words."""

    file: LargeFile
    conversation: int
    message: int | None
    """The integer key of the message."""
    message_id: str | None
    created_at: datetime


def conversations_of(connection: sqlite3.Connection, summary_ids: Sequence[str]) -> dict[str, int]:
    """The integer keys of the conversations that summaries belong to; an unknown one is left out."""
    rows = connection.execute(
        "SELECT summary_id, conversation_id FROM json_each(?) k JOIN summaries s ON s.summary_id = k.value",
        (to_json(list(summary_ids)),),
    )
    return dict(rows.fetchall())


def derived_ids(connection: sqlite3.Connection, summary_id: str) -> list[str]:
    """The summaries that this one is a source of."""
    sql = "SELECT summary_id FROM summary_parents WHERE parent_summary_id = ? ORDER BY ordinal, summary_id"
    return column(connection, sql, summary_id)


def source_messages(connection: sqlite3.Connection, summary_id: str) -> list[SourceMessage]:
    """The messages that a leaf summary stands for, in order."""
    of = "summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = ? ORDER BY l.ordinal"
    return _source_messages(connection, of, summary_id)


def messages_by_number(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[SourceMessage]:
    """Messages by their integer keys, in that order; an unknown one is left out."""
    of = "json_each(?) k CROSS JOIN messages m ON m.message_id = k.value ORDER BY k.key"
    return _source_messages(connection, of, to_json(list(numbers)))


def _source_messages(connection: sqlite3.Connection, of: str, chosen: str) -> list[SourceMessage]:
    rows = connection.execute(
        f"""
        SELECT m.message_id, m.message_key, m.conversation_id, m.role, m.full_text,
               iif(m.parts_text = '', m.token_count, 0), m.created_at
        FROM {of}
        """,  # noqa: S608 (our own constants)
        (chosen,),
    )
    return [SourceMessage._make((*row[:6], parse_instant(row[6]))) for row in rows]


def leaves_of(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, str]:
    """The leaf summaries that messages, named by their integer keys, went into; one that went into none is left out."""
    rows = connection.execute(
        """
        SELECT l.message_id, l.summary_id FROM json_each(?) k JOIN summary_messages l ON l.message_id = k.value
        ORDER BY l.summary_id DESC
        """,
        (to_json(list(numbers)),),
    )
    return dict(rows.fetchall())


def deepest(connection: sqlite3.Connection, conversations: Sequence[int] | None) -> int:
    """The greatest depth of a summary of the conversations; -1 where there is none."""
    sql = """
        SELECT coalesce(max(depth), -1) FROM summaries
        WHERE ?1 IS NULL OR conversation_id IN (SELECT value FROM json_each(?1))
    """
    return int(value(connection, sql, None if conversations is None else to_json(list(conversations))))


def walk(
    connection: sqlite3.Connection,
    summary_ids: Sequence[str],
    direction: Direction = "sources",
    kept: Callable[[list[str]], Collection[str]] = list,
    depth: int | None = None,
) -> list[LineagePlace]:
    """Summaries and what lies in one direction of them, by steps and path; each once, at its first place.

    It is the one way in which the edges between summaries are followed.

    Args:
        connection: where they are stored.
        summary_ids: where to begin.
        direction: to what they were made of, or to what was made of them.
        kept: those of some summaries to go on with.
        depth: how many steps to go; None = to the ends.
    """
    near, far = ("summary_id", "parent_summary_id") if direction == "sources" else ("parent_summary_id", "summary_id")
    paths = dict.fromkeys(summary_ids, "")
    level, found, steps = list(paths), [], 0
    while level:
        edges: dict[str, dict[str, int]] = {one: {} for one in level}
        if depth is None or steps < depth:
            read = connection.execute(
                f"""
                SELECT {near}, {far}, ordinal FROM json_each(?) k JOIN summary_parents p ON p.{near} = k.value
                ORDER BY ordinal, {far}
                """,  # noqa: S608 (our own constants)
                (to_json(level),),
            ).fetchall()
            allowed = set(kept([other for _, other, _ in read]))
            for one, other, ordinal in read:
                if other in allowed:
                    edges[one][other] = ordinal
        found += [LineagePlace(one, steps, paths[one], tuple(edges[one])) for one in level]
        next_level = []
        for one in level:
            for other, ordinal in edges[one].items():
                if other not in paths:
                    paths[other] = f"{paths[one]}.{ordinal:04d}" if paths[one] else f"{ordinal:04d}"
                    next_level.append(other)
        level, steps = sorted(next_level, key=paths.__getitem__), steps + 1
    return found


def beneath(connection: sqlite3.Connection, summary_ids: Sequence[str]) -> set[str]:
    """Summaries and all summaries that they were made of."""
    return {place.summary_id for place in walk(connection, summary_ids)}


def depth_first(
    start: str, sources: Callable[[str], Sequence[str]], depth: int | None = None
) -> Iterator[tuple[str, int]]:
    """Something and what it was made of, each followed by its own sources, with the steps down to it.

    What two were made of comes twice. Nothing comes beneath itself, so that it ends even where lineage is no DAG.

    Args:
        start: comes first, 0 steps down.
        sources: of one, in order.
        depth: how many steps to go down; None = to the ends.
    """
    waiting = [(start, frozenset[str]())]
    while waiting:
        one, above = waiting.pop()
        yield one, len(above)
        if depth is None or len(above) < depth:
            here = above | {one}
            waiting += [(source, here) for source in reversed(sources(one)) if source not in here]


def messages_beneath(connection: sqlite3.Connection, summary_ids: Sequence[str]) -> list[str]:
    """The ids of the messages that summaries stand for, each once, in the order of their sources."""
    sources = {place.summary_id: place.next_ids for place in walk(connection, summary_ids)}
    ordered = [one for root in summary_ids for one, _ in depth_first(root, sources.__getitem__)]
    sql = """
        SELECT m.message_key FROM json_each(?) k JOIN summary_messages l ON l.summary_id = k.value
        JOIN messages m USING (message_id) ORDER BY k.key, l.ordinal
    """
    return list(dict.fromkeys(column(connection, sql, to_json(ordered))))


def stored_files(connection: sqlite3.Connection, file_ids: Sequence[str]) -> dict[str, StoredFile]:
    """Large files by their ids; an unknown one is left out."""
    rows = connection.execute(
        """
        SELECT f.file_id, f.ordinal, f.position, f.file_name, f.mime_type, f.byte_size, f.exploration_summary,
               f.conversation_id, f.message_id, m.message_key, f.created_at
        FROM json_each(?) k JOIN large_files f ON f.file_id = k.value LEFT JOIN messages m USING (message_id)
        """,
        (to_json(list(file_ids)),),
    )
    found = {}
    for file_id, ordinal, position, name, mime_type, size, exploration, *of, at in rows:
        file = LargeFile(file_id, ordinal, position, name, mime_type, size or 0, exploration or "")
        found[file_id] = StoredFile._make((file, *of, parse_instant(at)))
    return found


def files_of(connection: sqlite3.Connection, number: int) -> tuple[str, ...]:
    """The ids of the large files that a message, named by its integer key, holds."""
    sql = "SELECT file_id FROM large_files WHERE message_id = ? ORDER BY ordinal, position"
    return tuple(column(connection, sql, number))
