"""Rows of numbers that are worked out once: by their own numbers, and their sums by the block."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]
Make = Callable[[Places], Rows]
"""Gives the rows of some numbers."""
NOTHING = 1e-6
"""A vector that is shorter says nothing."""
_GRID = 2.0**20
_AT_ONCE = 1024  # rows: in double precision, they and a query lie in the processor's cache
_FIRST_ROOM = 64


class KeptRows:
    """A row a number, made when it is first asked for; who asks from several threads holds a lock."""

    def __init__(self, dim: int, room: int = 0) -> None:
        """
        Args:
            dim: numbers a row.
            room: numbers that may be asked for, where that is known.
        """
        self._rows, self._is_made = np.empty((room, dim), np.float32), np.zeros(room, np.bool_)

    def of(self, numbers: Places, make: Make) -> Rows:
        """The rows of some numbers, each named once.

        Args:
            make: each row must come out the same whichever come with it.
        """
        if (needed := int(numbers.max(initial=-1)) + 1) > len(self._rows):
            room = max(needed, 2 * len(self._rows), _FIRST_ROOM)
            rows = np.empty((room, self._rows.shape[1]), np.float32)  # memory is taken as rows come
            rows[: len(self._rows)] = self._rows
            self._rows, self._is_made = rows, np.append(self._is_made, np.zeros(room - len(self._is_made), np.bool_))
        missing = numbers[~self._is_made[numbers]]
        if len(missing):
            self._rows[missing] = made = make(missing)
            self._is_made[missing] = True
            if len(missing) == len(numbers):
                return made
        is_all = len(numbers) == needed and bool((np.diff(numbers) == 1).all())
        return self._rows[:needed] if is_all else self._rows[numbers]


class BlockSums:
    """Sums of rows, a block of numbers at a time: of numbers that grow by a few only the last block is added up."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, bytes], dict[int, tuple[int, Numbers]]] = {}

    def of(self, numbers: Places, groups: Places, make: Make) -> dict[int, tuple[int, Numbers]]:
        """Group -> how many rows it has, and their sum.

        Args:
            numbers: the rows that are added up.
            groups: of each.
        """
        sums = {}
        for first in range(0, len(numbers), _AT_ONCE):
            here, mine = numbers[first : first + _AT_ONCE], groups[first : first + _AT_ONCE]
            key = here.tobytes(), mine.tobytes()
            sums[key] = self._kept[key] if key in self._kept else _summed(make(here).astype(np.float64), mine)
        self._kept = sums
        found: dict[int, tuple[int, Numbers]] = {}
        for block in sums.values():
            for group, (count, total) in block.items():
                known, before = found.get(group, (0, np.zeros_like(total)))
                found[group] = known + count, before + total
        return found


def _summed(rows: Numbers, groups: Places) -> dict[int, tuple[int, Numbers]]:
    found = {}
    for group in np.unique(groups).tolist():
        mine = rows[groups == group]
        found[group] = len(mine), mine.sum(axis=0)
    return found


def units(rows: npt.NDArray[Any], centres: Rows | None = None, owners: Places | None = None) -> Rows:
    """Rows of unit length, on the grid, which single precision holds exactly; what is next to nothing becomes nothing.

    Args:
        centres: one is taken away from each row first.
        owners: of each row the number of its centre.
    """
    found = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        part = rows[here] if centres is None or owners is None else rows[here] - centres[owners[here]]
        lengths = np.linalg.norm(part, axis=1, keepdims=True)
        found[here] = on_grid(
            part * np.where(lengths > NOTHING, 1 / np.maximum(lengths, NOTHING), 0).astype(part.dtype)
        )
    return found


def on_grid(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows of at most unit length, rounded to multiples of 2 ** -20: texts that are alike are exactly as near to a
    query, and stay in their order."""
    rounded: npt.NDArray[Any] = np.round(rows * _GRID) / _GRID
    return rounded


def dot_products(rows: Rows, query: Numbers) -> Numbers:
    """Of each row with a query, both on the grid: exact in double precision."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        np.dot(rows[part].astype(np.float64), query, out=found[part])
    return found
