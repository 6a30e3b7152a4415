"""The messages and summaries of a context, read when they are looked at: most contexts show only the newest."""

from collections.abc import Callable, Iterator, Sequence
from operator import eq
from typing import Generic, TypeVar, overload

from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, Summary

Record = TypeVar("Record", Message, Summary, Message | Summary)
Read = Callable[[Sequence[ContextEntry]], list[Record]]

_BLOCK = 128
"""Neighbours that are read at once."""


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
