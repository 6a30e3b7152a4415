"""The context of one conversation, kept in memory in step with the store."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.summary_id import summary_id
from lcm.errors import StoreError
from lcm.records import ContextEntry, Message, Shard, Summary
from lcm.store.guidance import add_shards, admission_scores
from lcm.store.store import Store


class StoredWindow:
    """A conversation's context: read once, then followed, so that a turn costs what is new in it."""

    def __init__(self, store: Store, conversation_id: str) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._entries = ContextTotals(store.context(conversation_id))

    @property
    def conversation_id(self) -> str:
        return self._conversation_id

    @property
    def entries(self) -> ContextTotals:
        return self._entries

    @property
    def tokens(self) -> int:
        """Of all entries, as stored."""
        return self._entries.tokens

    def follow(self) -> None:
        """Take in what was appended to the conversation since."""
        last = self._entries[-1].ordinal if self._entries else -1
        self._entries.extend(self._store.context(self._conversation_id, last))

    def messages(self, message_ids: Sequence[str]) -> list[Message]:
        found = self._store.messages_by_id(message_ids)
        return [found[message_id] for message_id in message_ids]

    def summaries(self, summary_ids: Sequence[str]) -> list[Summary]:
        found = self._store.summaries_by_id(summary_ids)
        return [found[summary_id] for summary_id in summary_ids]

    def replace(self, first: int, last: int, summary: Summary, shards: Sequence[Shard] = ()) -> Summary:
        """Put a summary in the place of entries; one whose id is taken gets the next number.

        Raises:
            StoreError: if another writer has replaced them meanwhile: nothing is written, and the context as it is
                now has been read.
        """
        start, stop = self._entries.place(first), self._entries.place(last + 1)
        before = self._entries.tokens
        after = before - sum(entry.tokens for entry in self._entries[start:stop]) + summary.token_count
        left = [entry for entry in self._entries[start:stop] if entry.item_id in set(summary.source_ids)]
        try:
            with self._store.transaction():
                self._retire(start, stop, shards)
                summary = with_free_id(summary, self._store.has_summary)
                ends = (left[0].ordinal, left[-1].ordinal) if left else (first, last)
                self._store.replace_range(self._conversation_id, *ends, summary, before, after)
        except StoreError:
            self._entries = ContextTotals(self._store.context(self._conversation_id))
            raise
        self._entries.replace(
            start, stop, ContextEntry(ends[0], "summary", summary.summary_id, summary.token_count, summary.depth)
        )
        return summary

    def protect(self, first: int, last: int, shards: Sequence[Shard]) -> None:
        """Take entries out of the context, each kept as guidance.

        Raises:
            StoreError: as `replace`.
        """
        start, stop = self._entries.place(first), self._entries.place(last + 1)
        try:
            with self._store.transaction():
                self._retire(start, stop, shards)
        finally:  # a ledger replaces entries by one entry, never by none
            self._entries = ContextTotals(self._store.context(self._conversation_id))

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        with self._store.reading() as connection:
            return admission_scores(connection, message_ids)

    def _retire(self, start: int, stop: int, shards: Sequence[Shard]) -> None:
        """Keep messages among these entries as guidance, and take them out of the stored context."""
        if not shards:
            return
        kept = {shard.message_id for shard in shards}
        ordinals = [entry.ordinal for entry in self._entries[start:stop] if entry.item_id in kept]
        standing = {entry.item_id for entry in self._store.context(self._conversation_id)}
        if len(ordinals) != len(kept) or not kept <= standing:
            raise StoreError(
                f"conversation {self._conversation_id!r}: the context is no longer what was to be protected; plan again"
            )
        with self._store.writing() as connection:
            add_shards(connection, shards)
        self._store.remove_from_context(self._conversation_id, ordinals)

    def note(self, happened_at: datetime, event: str, detail: str) -> None:
        self._store.note_compaction(self._conversation_id, happened_at, event, detail)


def with_free_id(summary: Summary, is_taken: Callable[[str], bool]) -> Summary:
    """The summary as it is, or by the first number of its words and instant whose id is free."""
    number = 0
    while is_taken(summary.summary_id):
        number += 1
        summary = replace(summary, summary_id=summary_id(summary.content, summary.created_at, number))
    return summary
