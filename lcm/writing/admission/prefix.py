"""The beginning of a sequence, without a copy of it."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

Item = TypeVar("Item", covariant=True)


class Prefix(Sequence[Item]):
    """The first `count` items; the sequence behind it may grow, not change."""

    def __init__(self, items: Sequence[Item], count: int) -> None:
        self._items = items
        self._count = min(count, len(items))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return islice(self._items, self._count)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | Sequence[Item]:
        places = range(self._count)[place]
        if isinstance(places, int):
            return self._items[places]
        return [self._items[i] for i in places]
