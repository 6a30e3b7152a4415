"""The messages of a context as a recent tail sees them, read from the end on as far back as it looks."""

from collections.abc import Sequence
from typing import overload

from lcm.compaction.clustering.cluster_counting import ClusterCounting
from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.recent_tail import Turn
from lcm.protocols.compaction import ContextWindow
from lcm.records.summary import ContextEntry
from lcm.transcript.recorded_metadata import recorded_bundle

_BLOCK = 8
"""Messages that are read at once: most tails are shorter."""
_KNOWN = 1024
"""Turns that are remembered of a conversation, before it begins anew."""


class SaidTurns(Sequence[Turn]):
    """All messages that stand in a context, in order; what no tail looks at is never read."""

    def __init__(self, window: ContextWindow, entries: ContextTotals, counting: ClusterCounting) -> None:
        self._window = window
        self._counting = counting
        self._said = entries.said
        self._turns: list[Turn] = []
        """Newest first."""

    def __len__(self) -> int:
        return len(self._said)

    @overload
    def __getitem__(self, at: int) -> Turn: ...
    @overload
    def __getitem__(self, at: slice) -> list[Turn]: ...
    def __getitem__(self, at: int | slice) -> Turn | list[Turn]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        return self._turns[self._read_to(at)]

    def _read_to(self, at: int) -> int:
        """How far from the end the place is, which is read then."""
        count = len(self._said)
        if not -count <= at < count:
            raise IndexError(at)
        back = (count - 1 - at) % count
        while back >= len(self._turns):
            self._turns += self._read(self._said[max(0, count - len(self._turns) - _BLOCK) : count - len(self._turns)])
        return back

    def _read(self, entries: Sequence[ContextEntry]) -> list[Turn]:
        """The turns of some entries, newest first; what an earlier tail looked at is known."""
        known = self._window.turns
        if unread := [entry for entry in entries if entry.item_id not in known]:
            if len(known) > _KNOWN:
                known.clear()
                unread = list(entries)
            messages = self._window.messages([entry.item_id for entry in unread])
            tokens = self._counting.turn_tokens(unread, messages)
            for entry, message, count in zip(unread, messages, tokens, strict=True):
                known[entry.item_id] = Turn(count, message.role, recorded_bundle(message))
        return [known[entry.item_id] for entry in reversed(entries)]
