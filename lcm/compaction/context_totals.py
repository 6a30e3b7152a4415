"""The context items of a conversation with their running totals, and the ids of the summaries that come to stand there.

Source: lossless-claw 0.6.3, of the ids.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TypeVar

from lcm.clock import EPOCH
from lcm.encoding import well_formed
from lcm.protocols.compaction import ContextWindow
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry

Seen = TypeVar("Seen")
_ordinal = attrgetter("ordinal")
_MILLISECOND = timedelta(milliseconds=1)
_BLOCK = 8
"""Messages that are read at once: most tails are shorter."""
_KNOWN = 1024
"""Messages of which is known what was seen, before it is forgotten."""


class ContextTotals(list[ContextEntry]):
    """Entries in order; what every turn asks of all of them is kept up to date instead of counted again.

    An entry *weighs* its stored tokens; where none are stored, what `weigh` was told, or nothing so far. Entries change
    by `extend` and `put` alone.
    """

    def __init__(self, entries: Iterable[ContextEntry] = ()) -> None:
        super().__init__()
        self.said: list[ContextEntry] = []
        """The entries that are messages."""
        self._summaries: list[ContextEntry] = []
        self.tokens = 0
        """Of all entries, as stored."""
        self.raw_weight = 0
        """What all messages weigh."""
        self._weights: dict[str, int] = {}
        self._unweighed: dict[str, ContextEntry] = {}
        self._depths: Counter[int] = Counter()
        self.extend(entries)

    @property
    def depths(self) -> list[int]:
        """The depths that summaries have, ascending."""
        return sorted(depth for depth, count in self._depths.items() if count)

    @property
    def unweighed(self) -> list[ContextEntry]:
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
                self.raw_weight += weight if entry.is_message else 0

    def place(self, ordinal: int) -> int:
        """Where the first entry with that ordinal, or a higher one, stands."""
        return bisect_left(self, ordinal, key=_ordinal)

    def summaries_before(self, ordinal: int) -> Iterator[tuple[str, int]]:
        """The ids and tokens of the summaries before an ordinal, the last one first."""
        for place in range(bisect_left(self._summaries, ordinal, key=_ordinal) - 1, -1, -1):
            yield self._summaries[place].item_id, self._summaries[place].tokens

    def extend(self, entries: Iterable[ContextEntry]) -> None:
        for entry in entries:
            self.append(entry)
            (self.said if entry.is_message else self._summaries).append(entry)
            self._count(entry, 1)

    def put(self, start: int, stop: int, *entries: ContextEntry) -> None:
        """Put entries in the place of those, one at least, from `start` to before `stop`."""
        replaced = self[start:stop]
        first, last = replaced[0].ordinal, replaced[-1].ordinal
        for kind in (self.said, self._summaries):
            begin, end = bisect_left(kind, first, key=_ordinal), bisect_right(kind, last, key=_ordinal)
            kind[begin:end] = [entry for entry in entries if entry.is_message is (kind is self.said)]
        self[start:stop] = entries
        for entry in replaced:
            self._count(entry, -1)
            self._unweighed.pop(entry.item_id, None)
            self._weights.pop(entry.item_id, None)
        for entry in entries:
            self._count(entry, 1)

    def _count(self, entry: ContextEntry, sign: int) -> None:
        self.tokens += sign * entry.tokens
        self.raw_weight += sign * self.weight(entry) if entry.is_message else 0
        if entry.depth is not None:
            self._depths[entry.depth] += sign
        if sign > 0 and entry.tokens <= 0:
            self._unweighed[entry.item_id] = entry


def totals_of(entries: Sequence[ContextEntry]) -> ContextTotals:
    """Give the entries with their totals: at no cost where they are kept already."""
    return entries if isinstance(entries, ContextTotals) else ContextTotals(entries)


def newest_first(
    window: ContextWindow, said: Sequence[ContextEntry], seen: Callable[[ContextEntry, Message], Seen], name: str = ""
) -> Iterator[Seen]:
    """What is seen of messages, read as far back as it is asked for; what was seen before is known.

    Args:
        window: the context.
        said: its messages, in order.
        seen: looks at one.
        name: tells apart what looks at messages in other ways.
    """
    known = window.turns
    for stop in range(len(said), 0, -_BLOCK):
        entries = list(said[max(0, stop - _BLOCK) : stop])
        unread = [entry for entry in entries if name + entry.item_id not in known]
        if unread and len(known) > _KNOWN:
            known.clear()
            unread = entries
        messages = window.messages([one.item_id for one in unread]) if unread else []
        for entry, message in zip(unread, messages, strict=True):
            known[name + entry.item_id] = seen(entry, message)
        yield from [known[name + entry.item_id] for entry in reversed(entries)]


def summary_id(content: str, created_at: datetime, number: int = 0) -> str:
    """`sum_` and 16 hex digits of the sha256 of the words and the milliseconds since 1970.

    Args:
        content: the summary's words.
        created_at: when it was made; of a replay, when it would have been.
        number: tells summaries of the same words and millisecond apart: 0 for the first. There is no second one in the
            original.
    """
    seed = f"{well_formed(content)}{(created_at - EPOCH) // _MILLISECOND}{f'#{number}' if number else ''}"
    return f"sum_{hashlib.sha256(seed.encode()).hexdigest()[:16]}"
