"""Columns of numbers that only grow: what was read of them stays as it is, and nothing is copied for one more row."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

_FIRST_ROWS = 64
_Number = TypeVar("_Number", bound=np.generic)


class GrowingColumn(Generic[_Number]):
    """Rows of numbers, with room behind them."""

    def __init__(self, dtype: type[_Number], *shape: int) -> None:
        """
        Args:
            shape: of one row.
        """
        self._room: npt.NDArray[_Number] = np.empty((_FIRST_ROWS, *shape), dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> npt.NDArray[_Number]:
        """All rows so far. Who keeps them sees no later ones."""
        return self._room[: self._count]

    def head(self, count: int) -> "GrowingColumn[_Number]":
        """A copy of the first rows, to grow by itself."""
        found = GrowingColumn(self._room.dtype.type, *self._room.shape[1:])
        found.extend(self._room[:count])
        return found

    def extend(self, rows: npt.NDArray[Any] | Sequence[Any]) -> None:
        new = np.asarray(rows, self._room.dtype)
        end = self._count + len(new)
        if end > len(self._room):
            room = np.empty((max(end, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype)
            room[: self._count] = self._room[: self._count]
            self._room = room
        self._room[self._count : end] = new
        self._count = end


class GrowingLists:
    """Lists of whole numbers, one behind another in one column."""

    def __init__(self) -> None:
        self._numbers = GrowingColumn(np.int32)
        self._ends = GrowingColumn(np.int64)
        self._ends.extend([0])

    def extend(self, lists: Sequence[Sequence[int]]) -> None:
        sizes = np.fromiter(map(len, lists), np.int64, len(lists))
        self._ends.extend(len(self._numbers) + np.cumsum(sizes))
        self._numbers.extend(np.fromiter(chain.from_iterable(lists), np.int32, int(sizes.sum())))

    def head(self, count: int) -> "GrowingLists":
        """A copy of the first lists, to grow by itself."""
        found = GrowingLists()
        found._ends = self._ends.head(count + 1)
        found._numbers = self._numbers.head(int(self._ends.rows[count]))
        return found

    @property
    def frozen(self) -> "NumberLists":
        return NumberLists(self._numbers.rows, self._ends.rows)


class NumberLists:
    """Lists of whole numbers as they stood at one time."""

    __slots__ = ("_ends", "numbers")

    def __init__(self, numbers: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]) -> None:
        self.numbers, self._ends = numbers, ends

    def of(self, places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The lists of some places, one behind another, and how long each is."""
        begun, ends = self._ends[places], self._ends[places + 1]
        return self.numbers[runs(begun, ends)], ends - begun


def runs(begun: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers from each beginning up to its end, one run behind another."""
    sizes = ends - begun
    behind = np.cumsum(sizes)
    found: npt.NDArray[np.int64] = np.repeat(begun - (behind - sizes), sizes) + np.arange(sizes.sum())
    return found
