"""The messages of a context as a recent tail sees them, read from the end on as far back as it looks."""

from collections.abc import Sequence
from itertools import islice
from typing import overload

from lcm.compaction.clustering.cluster_counting import ClusterCounting
from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.recent_tail import Turn
from lcm.protocols.compaction import ContextWindow
from lcm.records.summary import ContextEntry
from lcm.transcript.recorded_metadata import recorded_bundle

_BLOCK = 8
"""Messages that are read at once: most tails are shorter."""


class SaidTurns(Sequence[Turn]):
    """All messages that stand in a context, in order; what no tail looks at is never read."""

    def __init__(self, window: ContextWindow, entries: ContextTotals, counting: ClusterCounting) -> None:
        self._window = window
        self._counting = counting
        self._count = entries.messages
        self._older = (entry for entry in reversed(entries) if entry.is_message)
        self._entries: list[ContextEntry] = []
        self._turns: list[Turn] = []
        """Newest first, as the entries."""

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Turn: ...
    @overload
    def __getitem__(self, at: slice) -> list[Turn]: ...
    def __getitem__(self, at: int | slice) -> Turn | list[Turn]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        return self._turns[self._read_to(at)]

    def entry(self, at: int) -> ContextEntry:
        return self._entries[self._read_to(at)]

    def _read_to(self, at: int) -> int:
        """How far from the end the place is, which is read then."""
        if not -self._count <= at < self._count:
            raise IndexError(at)
        back = (self._count - 1 - at) % self._count
        while back >= len(self._turns):
            entries = list(islice(self._older, _BLOCK))
            messages = self._window.messages([entry.item_id for entry in entries])
            tokens = self._counting.turn_tokens(entries, messages)
            self._entries += entries
            self._turns += [
                Turn(count, message.role, recorded_bundle(message))
                for count, message in zip(tokens, messages, strict=True)
            ]
        return back
