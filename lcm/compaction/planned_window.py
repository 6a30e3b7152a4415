"""The context of one conversation as it stood when compaction was planned, to be compacted beside the session."""

from collections.abc import Sequence
from datetime import datetime

from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.window import StoredWindow
from lcm.records.conversation import Message
from lcm.records.summary import GuidanceShard, MessageHeat, Summary
from lcm.store.store import Store


class PlannedWindow(StoredWindow):
    """A window whose changes stay in memory until `apply` writes them, all or none.

    Nothing is copied until a plan is under way: it reads through the live window. From `hold` on, it has all that
    compaction may ask for and touches no store, so that another thread can work on it; messages that are said
    meanwhile are no part of it.
    """

    def __init__(self, store: Store, live: StoredWindow) -> None:
        super().__init__(store, live.conversation_id)
        self._live = live
        self._staged = []
        self._messages: dict[str, Message] | None = None
        self._scores: dict[str, float] = {}
        self.attempted = set(live.attempted)
        self.turns = live.turns

    @property
    def entries(self) -> ContextTotals:
        return self._live.entries if self._read is None else self._read

    def hold(self) -> None:
        """Read all that compaction may ask for."""
        self._part()
        said = [entry.item_id for entry in self.entries if entry.is_message]
        super().summaries([entry.item_id for entry in self.entries if not entry.is_message])
        self._scores = super().admission_scores(said)
        self._messages = {message.message_id: message for message in super().messages(said)}

    def newest_made(self, before: tuple[datetime, str], at_most: int) -> tuple[tuple[datetime, str], str] | None:
        return self._live.newest_made(before, at_most) if self._read is None else super().newest_made(before, at_most)

    def heat(self) -> dict[str, MessageHeat]:
        """As the live window knows it: what is hot is asked before anything is planned."""
        return self._live.heat()

    def messages(self, message_ids: Sequence[str]) -> list[Message]:
        if self._messages is None:
            return super().messages(message_ids)
        return [self._messages[message_id] for message_id in message_ids]

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        if self._messages is None:
            return super().admission_scores(message_ids)
        return {one: self._scores[one] for one in message_ids if one in self._scores}

    def replace(self, first: int, last: int, summary: Summary, shards: Sequence[GuidanceShard] = ()) -> Summary:
        self._part()
        return super().replace(first, last, summary, shards)

    def protect(self, first: int, last: int, shards: Sequence[GuidanceShard]) -> None:
        self._part()
        super().protect(first, last, shards)

    def apply(self) -> None:
        """Write what was planned, as one transaction.

        Raises:
            StoreError: if another writer has replaced what it was planned on: nothing is written.
        """
        if self.is_changed:
            try:
                super().apply()
            finally:
                self._live.forget()
        self._live.attempted |= self.attempted

    def _part(self) -> None:
        """Have entries of its own: the live window follows what is said."""
        if self._read is None:
            self._read, self.turns = ContextTotals(self._live.entries), dict(self._live.turns)

    def _is_taken(self, summary_id: str) -> bool:
        """Of what is stored meanwhile nothing is known: `apply` refuses an id that is taken."""
        return summary_id in self._staged_summaries or (self._messages is None and super()._is_taken(summary_id))
