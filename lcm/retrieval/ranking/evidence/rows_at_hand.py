"""Rows that depend on a moment of a talk alone: each is worked out when a query first looks at it."""

from collections.abc import Callable

import numpy as np

from lcm.retrieval.ranking.evidence.haystack import Places
from lcm.retrieval.ranking.vector_rows import Rows

_MOST = 1 << 14
"""Rows that stay at hand: of 384 numbers 24 MiB."""


class RowsAtHand:
    """A row a number; who asks holds the lock of the talk."""

    def __init__(self, count: int, dim: int) -> None:
        """
        Args:
            count: of what may be asked for, numbered from 0.
            dim: numbers a row.
        """
        self._places = np.full(count, -1, np.int32)
        self._rows = np.empty((min(count, _MOST), dim), np.float32)  # memory is taken as rows come, and but once
        self._count = 0

    def of(self, numbers: Places, make: Callable[[Places], Rows]) -> Rows:
        """The rows of some numbers, each named once.

        Args:
            make: gives the rows of those that are not at hand; each must come out the same whichever come with it.
        """
        missing = numbers[self._places[numbers] < 0]
        if len(missing):
            if self._count + len(missing) > len(self._rows):
                self._places[:], self._count, missing = -1, 0, numbers
                if len(missing) > len(self._rows):
                    self._rows = np.empty((len(missing), self._rows.shape[1]), np.float32)
            first, self._count = self._count, self._count + len(missing)
            self._rows[first : self._count] = make(missing)
            self._places[missing] = np.arange(first, self._count)
        found: Rows = self._rows[self._places[numbers]]
        return found
