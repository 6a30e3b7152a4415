"""The context of a conversation: the ordered list of messages and summaries that stands for all that was said."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import eq
from typing import Generic, TypeVar, overload

from lcm.clock import format_instant
from lcm.collection import collection_paused
from lcm.encoding import to_json
from lcm.errors import StoreError
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, Summary
from lcm.store.messages import ORDINAL_STEP, last_ordinal, messages_by_key
from lcm.store.sqlite import LISTED, add_row, column, value
from lcm.store.summaries import add_compaction, insert_summary, summaries_by_id

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
