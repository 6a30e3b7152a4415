"""Documents by id: a few of many are looked up in a table that is kept beside their frame.

A join of forty rows with the frame of all documents reads the whole of it, for every query.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import polars as pl

from lcm.protocols.retrieval import Batch

_Made = TypeVar("_Made")
_KEPT = 16
"""Frames whose tables are kept: of each moment, and of those before it while other threads still ask."""


def documents_of(batch: Batch, ids: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of documents that a batch knows, of those it sees and of its turns.

    Args:
        batch: what queries were asked of.
        ids: of documents, any number of times each.
        columns: of `Batch.documents`, `document_id` among them.

    Returns:
        A row for each id, in their order; null in all columns where the batch does not know the document.
    """
    found = rows_of(batch.documents, ids, columns)
    return found if batch.turns is None else _filled(found, rows_of(batch.turns, ids, columns))


def texts_of(batch: Batch, ids: pl.Series) -> list[str | None]:
    """The texts of documents that a batch sees, one for each id; None of one that it does not see."""
    return rows_of(batch.documents, ids, ["text"])["text"].to_list()


def rows_of(documents: pl.DataFrame, ids: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of documents of a frame, a row for each id, in their order; null where it has no such document."""
    places = places_of(documents)
    rows = pl.Series([places.get(one) for one in ids], dtype=pl.UInt32)
    return documents.select(pl.col(columns).gather(rows))


def _filled(found: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    is_found = found["document_id"].is_not_null()
    if is_found.all():
        return found
    return found.select(pl.when(is_found).then(pl.col(name)).otherwise(others[name]) for name in found.columns)


class KeptBeside(Generic[_Made]):
    """Makes something of a frame, and gives the same for that very frame again, until the frame is gone.

    Safe to use from several threads; two that ask at once may both make it.
    """

    def __init__(self, make: Callable[[pl.DataFrame], _Made], kept: int) -> None:
        self._make, self._most = make, kept
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[weakref.ref[pl.DataFrame], _Made]] = OrderedDict()

    def __call__(self, frame: pl.DataFrame) -> _Made:
        key = id(frame)
        with self._lock:
            if (known := self._kept.get(key)) is not None and known[0]() is frame:
                self._kept.move_to_end(key)
                return known[1]
        made = self._make(frame)
        with self._lock:
            self._kept[key] = weakref.ref(frame), made
            for gone in [other for other, (held, _) in self._kept.items() if held() is None]:
                del self._kept[gone]
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def _places(documents: pl.DataFrame) -> dict[str, int]:
    return {name: place for place, name in enumerate(documents["document_id"])}


_places_of = KeptBeside(_places, _KEPT)


def places_of(documents: pl.DataFrame) -> Mapping[str, int]:
    """Where each document stands in a frame, by its id."""
    return _places_of(documents)
