"""The context items of a conversation with their running totals."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import overload

from lcm.compaction.summary_order import SummaryOrder
from lcm.records.summary import ContextEntry

_ordinal = attrgetter("ordinal")


class ContextTotals(Sequence[ContextEntry]):
    """Entries in order; what every turn asks of all of them is kept up to date instead of counted again.

    An entry *weighs* its stored tokens; where none are stored, what `weigh` was told, or nothing so far.
    """

    def __init__(self, entries: Iterable[ContextEntry] = ()) -> None:
        self._entries: list[ContextEntry] = []
        self._said: list[ContextEntry] = []
        self.summaries: SummaryOrder[int] = SummaryOrder()
        """By their ordinals."""
        self._weights: dict[str, int] = {}
        self._unweighed: dict[str, ContextEntry] = {}
        self._depths: Counter[int] = Counter()
        self._tokens = 0
        self._raw_weight = 0
        self.silence: tuple[int, int] | None = None
        """The first and last ordinal of neighbouring messages that were read and hold no words."""
        self.extend(entries)

    @overload
    def __getitem__(self, at: int) -> ContextEntry: ...
    @overload
    def __getitem__(self, at: slice) -> list[ContextEntry]: ...
    def __getitem__(self, at: int | slice) -> ContextEntry | list[ContextEntry]:
        return self._entries[at]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ContextEntry]:
        return iter(self._entries)

    @property
    def tokens(self) -> int:
        """Of all entries, as stored."""
        return self._tokens

    @property
    def said(self) -> Sequence[ContextEntry]:
        """The entries that are messages."""
        return self._said

    @property
    def raw_weight(self) -> int:
        """What all messages weigh."""
        return self._raw_weight

    @property
    def depths(self) -> list[int]:
        """The depths that summaries have, ascending."""
        return sorted(self._depths)

    @property
    def unweighed(self) -> Sequence[ContextEntry]:
        """Entries without stored tokens of which `weigh` was not told yet."""
        return list(self._unweighed.values())

    def weight(self, entry: ContextEntry) -> int:
        return entry.tokens if entry.tokens > 0 else self._weights.get(entry.item_id, 0)

    def weigh(self, weights: Mapping[str, int]) -> None:
        """Learn what unweighed entries weigh, by the id of their item."""
        for item_id, weight in weights.items():
            entry = self._unweighed.pop(item_id, None)
            if entry is not None:
                self._weights[item_id] = weight
                self._raw_weight += weight if entry.is_message else 0

    def place(self, ordinal: int) -> int:
        """Where the first entry with that ordinal, or a higher one, stands."""
        return bisect_left(self._entries, ordinal, key=_ordinal)

    def extend(self, entries: Iterable[ContextEntry]) -> None:
        for entry in entries:
            self._entries.append(entry)
            if entry.is_message:
                self._said.append(entry)
            self._count(entry, 1)

    def replace(self, start: int, stop: int, entry: ContextEntry) -> None:
        """Put one entry in the place of those from `start` to before `stop`."""
        self._put(start, stop, [entry])

    def remove(self, place: int) -> None:
        self._put(place, place + 1, [])

    def _put(self, start: int, stop: int, entries: list[ContextEntry]) -> None:
        replaced = self._entries[start:stop]
        messages = [old for old in replaced if old.is_message]
        first = bisect_left(self._said, (replaced or entries)[0].ordinal, key=_ordinal)
        self._said[first : first + len(messages)] = [entry for entry in entries if entry.is_message]
        self._entries[start:stop] = entries
        for old in replaced:
            self._count(old, -1)
            self._unweighed.pop(old.item_id, None)
            self._weights.pop(old.item_id, None)
        for entry in entries:
            self._count(entry, 1)

    def _count(self, entry: ContextEntry, sign: int) -> None:
        self._tokens += sign * entry.tokens
        if entry.is_message:
            self._raw_weight += sign * self.weight(entry)
        elif sign > 0:
            self.summaries.add(entry.ordinal, max(0, entry.tokens), entry.item_id)
        else:
            self.summaries.remove(entry.ordinal, max(0, entry.tokens))
        if entry.depth is not None:
            self._depths[entry.depth] += sign
            if not self._depths[entry.depth]:
                del self._depths[entry.depth]
        if sign > 0 and entry.tokens <= 0:
            self._unweighed[entry.item_id] = entry


def totals_of(entries: Sequence[ContextEntry]) -> ContextTotals:
    """Give the entries with their totals: at no cost where they are kept already."""
    return entries if isinstance(entries, ContextTotals) else ContextTotals(entries)
