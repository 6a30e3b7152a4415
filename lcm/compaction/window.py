"""The context of one conversation, kept in memory in step with the store."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from lcm.compaction.ledger import Ledger
from lcm.compaction.summary_id import summary_id
from lcm.errors import StoreError
from lcm.records import ContextEntry, Message, Summary
from lcm.store.store import Store


class StoredWindow:
    """A conversation's context: read once, then followed, so that a turn costs what is new in it."""

    def __init__(self, store: Store, conversation_id: str) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._entries = Ledger(store.context(conversation_id))

    @property
    def conversation_id(self) -> str:
        return self._conversation_id

    @property
    def entries(self) -> Ledger:
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

    def replace(self, first: int, last: int, summary: Summary) -> Summary:
        """Put a summary in the place of entries; one whose id is taken gets the next number.

        Raises:
            StoreError: if another writer has replaced them meanwhile: nothing is written, and the context as it is
                now has been read.
        """
        start, stop = self._entries.place(first), self._entries.place(last + 1)
        before = self._entries.tokens
        after = before - sum(entry.tokens for entry in self._entries[start:stop]) + summary.token_count
        try:
            with self._store.transaction():
                summary = with_free_id(summary, self._store.has_summary)
                self._store.replace_range(self._conversation_id, first, last, summary, before, after)
        except StoreError:
            self._entries = Ledger(self._store.context(self._conversation_id))
            raise
        self._entries.replace(
            start, stop, ContextEntry(first, "summary", summary.summary_id, summary.token_count, summary.depth)
        )
        return summary

    def note(self, happened_at: datetime, event: str, detail: str) -> None:
        self._store.note_compaction(self._conversation_id, happened_at, event, detail)


def with_free_id(summary: Summary, is_taken: Callable[[str], bool]) -> Summary:
    """The summary as it is, or by the first number of its words and instant whose id is free."""
    number = 0
    while is_taken(summary.summary_id):
        number += 1
        summary = replace(summary, summary_id=summary_id(summary.content, summary.created_at, number))
    return summary
