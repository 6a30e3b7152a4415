"""A context in which compaction is tried out: what it did is written all at once, or not at all."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.window import StoredWindow, with_free_id
from lcm.records import ContextEntry, Message, Shard, Summary
from lcm.store.store import Store


class StagedWindow:
    """A window whose changes stay in memory until `apply`.

    A turn or a sweep that a crash cuts short has then changed nothing, and doing it again gives what it would have
    given: a rule that looks at what was compacted before sees the same.
    """

    def __init__(self, store: Store, window: StoredWindow) -> None:
        self._store = store
        self._window = window
        self._entries = window.entries
        self._summaries: dict[str, Summary] = {}
        self._changes: list[Callable[[], object]] = []

    @property
    def conversation_id(self) -> str:
        return self._window.conversation_id

    @property
    def entries(self) -> ContextTotals:
        return self._entries

    @property
    def is_changed(self) -> bool:
        return bool(self._changes)

    def messages(self, message_ids: Sequence[str]) -> list[Message]:
        return self._window.messages(message_ids)

    def summaries(self, summary_ids: Sequence[str]) -> list[Summary]:
        stored = [one for one in summary_ids if one not in self._summaries]
        found = dict(zip(stored, self._window.summaries(stored), strict=True)) | self._summaries
        return [found[one] for one in summary_ids]

    def replace(self, first: int, last: int, summary: Summary, shards: Sequence[Shard] = ()) -> Summary:
        """Put a summary in the place of entries, here; `StoredWindow.replace` does so in the store later."""
        summary = with_free_id(summary, self._is_taken)
        self._unshare()
        start, stop = self._entries.place(first), self._entries.place(last + 1)
        sources = set(summary.source_ids)
        ordinal = next((entry.ordinal for entry in self._entries[start:stop] if entry.item_id in sources), first)
        self._entries.replace(
            start, stop, ContextEntry(ordinal, "summary", summary.summary_id, summary.token_count, summary.depth)
        )
        self._summaries[summary.summary_id] = summary
        self._changes.append(partial(self._window.replace, first, last, summary, shards))
        return summary

    def protect(self, first: int, last: int, shards: Sequence[Shard]) -> None:
        """Take entries out of the context, here; `StoredWindow.protect` does so in the store later."""
        start, stop = self._entries.place(first), self._entries.place(last + 1)
        self._entries = ContextTotals([*self._entries[:start], *self._entries[stop:]])
        self._changes.append(partial(self._window.protect, first, last, shards))

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        return self._window.admission_scores(message_ids)

    def note(self, happened_at: datetime, event: str, detail: str) -> None:
        self._changes.append(partial(self._window.note, happened_at, event, detail))

    def _unshare(self) -> None:
        if self._entries is self._window.entries:
            self._entries = ContextTotals(self._entries)

    def _is_taken(self, summary_id: str) -> bool:
        return summary_id in self._summaries or self._store.has_summary(summary_id)

    def apply(self) -> None:
        """Write everything as one transaction, each replacement by the store's own rule."""
        with self._store.transaction():
            for change in self._changes:
                change()
