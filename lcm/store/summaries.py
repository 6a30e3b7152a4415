"""The summary DAG as rows, who is made of whom, and the context of a conversation: the ordered list of messages and
summaries that stands for all that was said."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import eq, itemgetter
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import polars as pl

from lcm.clock import format_instant, parse_instant
from lcm.collection import collection_paused
from lcm.encoding import optional_instant, to_json, well_formed
from lcm.errors import StoreError
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, Summary
from lcm.store.conversations import conversation_row
from lcm.store.messages import ORDINAL_STEP, last_ordinal, messages_by_key
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


class LineagePlace(NamedTuple):
    """A summary at its place in a walk over the summary DAG."""

    summary_id: str
    steps: int
    path: str
    """Four digits a step, joined by dots: the position among the sources of the condensed summary of that step."""
    next_ids: tuple[str, ...]
    """The summaries that follow it in the direction of the walk, in order; none where the walk ends."""


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


Record = TypeVar("Record", Message, Summary, Message | Summary)
Read = Callable[[Sequence[ContextEntry]], list[Record]]

_BLOCK = 128
"""Neighbours that are read at once."""


def read_context(connection: sqlite3.Connection, conversation: int, after: int = -1) -> list[ContextEntry]:
    """Read the context items of a conversation in order, without their words; those beyond the ordinal `after`."""
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
    """Read the ids of the messages that stand at these places of a context."""
    sql = f"""
        SELECT m.message_key FROM context_items i JOIN messages m USING (message_id)
        WHERE i.conversation_id = ? AND i.ordinal {LISTED}
    """  # noqa: S608 (our own constants)
    return set(column(connection, sql, conversation, to_json(list(ordinals))))


def read_records(connection: sqlite3.Connection, entries: Sequence[ContextEntry]) -> list[Message | Summary]:
    """Read what entries stand for."""
    messages = messages_by_key(connection, [entry.item_id for entry in entries if entry.is_message])
    summaries = summaries_by_id(connection, [entry.item_id for entry in entries if not entry.is_message])
    return [messages[entry.item_id] if entry.is_message else summaries[entry.item_id] for entry in entries]


def replace_range(
    connection: sqlite3.Connection,
    conversation: int,
    first: int,
    last: int,
    summary: Summary,
    tokens_before: int = 0,
    tokens_after: int = 0,
) -> None:
    """Put a summary in the place of the context items from ordinal `first` to `last`, and note the event.

    Nothing else changes the context but appending and `remove_from_context`. The messages stay.

    Args:
        connection: inside the caller's transaction.
        conversation: whose context.
        first: the ordinal of the first item that the summary was made of.
        last: that of the last.
        summary: names exactly those items as its sources.
        tokens_before: of the whole context, for the event.
        tokens_after: likewise.

    Raises:
        StoreError: if the items are not the summary's sources, or its id is taken.
    """
    sql = """
        SELECT coalesce(m.message_key, i.summary_id) FROM context_items i LEFT JOIN messages m USING (message_id)
        WHERE i.conversation_id = ? AND i.ordinal BETWEEN ? AND ? ORDER BY i.ordinal
    """
    found = tuple(column(connection, sql, conversation, first, last))
    if not found or found != summary.source_ids:
        raise StoreError(
            f"conversation {summary.conversation_id!r}: the context from {first} to {last} is no longer what the "
            f"summary was made of ({len(found)} items, {len(summary.source_ids)} sources); plan again"
        )
    insert_summary(connection, conversation, summary)
    connection.execute(
        "DELETE FROM context_items WHERE conversation_id = ? AND ordinal BETWEEN ? AND ?", (conversation, first, last)
    )
    row = {"conversation_id": conversation, "ordinal": first, "item_type": "summary", "summary_id": summary.summary_id}
    add_row(connection, "context_items", row | {"created_at": format_instant(summary.created_at)})
    add_compaction(connection, conversation, summary.created_at, summary.kind, "", summary, tokens_before, tokens_after)


def remove_from_context(connection: sqlite3.Connection, conversation: int, ordinals: Sequence[int]) -> None:
    """Take items out of the context; their messages and summaries stay, and recall finds them."""
    for sql in (
        """
        INSERT INTO retired_items (conversation_id, ordinal, item_type, message_id, summary_id)
        SELECT conversation_id, ordinal, item_type, message_id, summary_id FROM context_items
        WHERE conversation_id = ? AND ordinal = ?
        """,
        "DELETE FROM context_items WHERE conversation_id = ? AND ordinal = ?",
    ):
        connection.executemany(sql, [(conversation, ordinal) for ordinal in ordinals])


def read_retired(connection: sqlite3.Connection, conversation: int) -> list[str]:
    """Read the ids of the messages and summaries that were taken out of the context."""
    sql = """
        SELECT coalesce(m.message_key, r.summary_id) FROM retired_items r LEFT JOIN messages m USING (message_id)
        WHERE r.conversation_id = ? ORDER BY r.ordinal
    """
    return column(connection, sql, conversation)


def hidden_ids(connection: sqlite3.Connection, conversation: int) -> set[str]:
    """The ids of the messages that were taken out of the context unless they are shown again."""
    sql = "SELECT message_key FROM messages WHERE conversation_id = ? AND hidden_at IS NOT NULL"
    return set(column(connection, sql, conversation))


def hide(connection: sqlite3.Connection, conversation: int, message_ids: Iterable[str], now: datetime) -> int:
    """Take messages out of the context, unless a summary stands for them; the store keeps them.

    Returns:
        How many were hidden.
    """
    ordinals = {entry.item_id: entry.ordinal for entry in read_context(connection, conversation) if entry.is_message}
    there = [message_id for message_id in dict.fromkeys(message_ids) if message_id in ordinals]
    connection.executemany(
        "UPDATE messages SET hidden_at = ? WHERE message_key = ? AND hidden_at IS NULL",
        [(format_instant(now), message_id) for message_id in there],
    )
    remove_from_context(connection, conversation, [ordinals[message_id] for message_id in there])
    return len(there)


def show(connection: sqlite3.Connection, conversation: int, message_ids: Sequence[str]) -> None:
    """Put hidden messages back, at the end of the context: what followed them is hidden in their turn."""
    last = last_ordinal(connection, conversation)
    for place, message_id in enumerate(message_ids, start=1):
        row = value(connection, "SELECT message_id FROM messages WHERE message_key = ?", message_id)
        connection.execute("DELETE FROM retired_items WHERE message_id = ?", (row,))
        connection.execute("UPDATE messages SET hidden_at = NULL WHERE message_id = ?", (row,))
        connection.execute(
            """
            INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, created_at)
            SELECT conversation_id, ?, 'message', message_id, created_at FROM messages WHERE message_id = ?
            """,
            (last + place * ORDINAL_STEP, row),
        )


class ContextRecords(Sequence[Record], Generic[Record]):
    """What the entries of a context stand for, in order. Messages and summaries never change, so that it does not
    matter when one is read."""

    def __init__(self, entries: Sequence[ContextEntry], read: Read[Record]) -> None:
        self.entries = entries
        self._read: Read[Record] = read
        self._blocks: dict[int, list[Record]] = {}

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        place = at if 0 <= at < len(self.entries) else range(len(self.entries))[at]
        block = self._blocks.get(place // _BLOCK)
        return (self._block(place // _BLOCK) if block is None else block)[place % _BLOCK]

    def __iter__(self) -> Iterator[Record]:
        for number in range(-(-len(self.entries) // _BLOCK)):
            yield from self._block(number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def _block(self, number: int) -> list[Record]:
        if number not in self._blocks:
            self._blocks[number] = self._read(self.entries[number * _BLOCK : (number + 1) * _BLOCK])
        return self._blocks[number]


def item_ids(items: Sequence[Message | Summary]) -> list[str]:
    """The ids of the items of a context; of those that are read when they are looked at none is read."""
    if isinstance(items, ContextRecords):
        return [entry.item_id for entry in items.entries]
    return [item.summary_id if isinstance(item, Summary) else item.message_id for item in items]


def messages_in(items: Sequence[Message | Summary]) -> Sequence[Message]:
    """The messages among the items of a context, likewise."""
    if isinstance(items, ContextRecords):
        return ContextRecords([entry for entry in items.entries if entry.is_message], items._read)
    return [item for item in items if isinstance(item, Message)]


def summaries_in(items: Sequence[Message | Summary]) -> Sequence[Summary]:
    """The summaries among them, likewise."""
    if isinstance(items, ContextRecords):
        return ContextRecords([entry for entry in items.entries if not entry.is_message], items._read)
    return [item for item in items if isinstance(item, Summary)]
