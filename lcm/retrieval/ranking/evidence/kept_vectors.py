"""Vectors of texts that are asked for again and again, as a talk grows by a few a question."""

import threading
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors
from lcm.retrieval.ranking.evidence.growing_columns import GrowingColumn

_Places = npt.NDArray[np.int64]


class KeptVectors:
    """The vectors of the texts that were asked for last, by the embedder's name; safe to use from several threads."""

    def __init__(self, most: int) -> None:
        """
        Args:
            most: vectors of each embedder that are kept; of more, those asked for longest ago go, down to three
                quarters.
        """
        self._most = most
        self._tables: dict[str, _Table] = {}
        self._lock = threading.Lock()

    def of(self, name: str, texts: Sequence[str], make: Callable[[list[str]], Vectors]) -> Vectors:
        """A vector of each text, shape (n, dim); at least one text.

        Args:
            name: of the embedder.
            make: gives a vector of each of some texts that are not kept.
        """
        with self._lock:
            table = self._tables.get(name)
            places = np.full(len(texts), -1) if table is None else table.places_of(texts)
            is_known = places >= 0
            known = None if table is None else table.read(places[is_known])
        if known is not None and is_known.all():
            return known
        missing: dict[str, int] = {}
        numbers = [missing.setdefault(texts[at], len(missing)) for at in np.flatnonzero(~is_known).tolist()]
        made = make(list(missing))
        with self._lock:
            table = self._tables.setdefault(name, _Table(made.dtype.type, made.shape[1]))
            table.add(list(missing), made)
            if len(table) > self._most:
                self._tables[name] = table.asked_last(self._most - self._most // 4)
        found = np.empty((len(texts), made.shape[1]), made.dtype)
        found[~is_known] = made[numbers]
        if known is not None:
            found[is_known] = known
        return found


class _Table:
    """The vectors of one embedder."""

    def __init__(self, dtype: type[Any], dim: int) -> None:
        self._places: dict[str, int] = {}
        self._rows: GrowingColumn[Any] = GrowingColumn(dtype, dim)
        self._asked: GrowingColumn[Any] = GrowingColumn(np.int64)
        """When each was asked for last."""
        self._now = 0

    def __len__(self) -> int:
        return len(self._places)

    def places_of(self, texts: Sequence[str]) -> _Places:
        """The row of each text, -1 of one that is not here."""
        return np.fromiter(map(self._places.get, texts, repeat(-1)), np.int64, len(texts))

    def read(self, places: _Places) -> Vectors:
        self._now += 1
        self._asked.rows[places] = self._now
        rows: Vectors = self._rows.rows[places]
        return rows

    def add(self, texts: Sequence[str], rows: Vectors) -> None:
        """Put vectors in, but of texts that another thread has put in meanwhile."""
        new = np.flatnonzero(self.places_of(texts) < 0)
        self._places |= {texts[at]: row for row, at in enumerate(new.tolist(), start=len(self))}
        self._rows.extend(rows[new])
        self._now += 1
        self._asked.extend(np.full(len(new), self._now))

    def asked_last(self, most: int) -> "_Table":
        """Those that were asked for last, as many as `most`."""
        texts, kept = list(self._places), np.sort(np.argsort(-self._asked.rows, kind="stable")[:most])
        table = _Table(self._rows.rows.dtype.type, self._rows.rows.shape[1])
        table.add([texts[at] for at in kept.tolist()], self._rows.rows[kept])
        table._asked.rows[:], table._now = self._asked.rows[kept], self._now
        return table
