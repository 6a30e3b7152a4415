"""Documents by id: a few of many are looked up in a table that is kept beside their frame.

A join of forty rows with the frame of all documents reads the whole of it, for every query.
"""

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import query_runs

_Held = TypeVar("_Held")
_Made = TypeVar("_Made")
_FEW = 2048
"""Ids whose columns are read one by one."""
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


def vectors_of(batch: Batch, ids: pl.Series) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Ask for the vector of each document once.

    Returns:
        The vectors, and for each id the position of its own.
    """
    listed = ids.to_list()
    places = {document_id: place for place, document_id in enumerate(dict.fromkeys(listed))}
    return batch.document_vectors(list(places)), np.fromiter(map(places.__getitem__, listed), np.int64, len(listed))


def queries_of(frame: pl.DataFrame, batch: Batch) -> pl.Series:
    """Where in the batch the query of each row stands, UInt32."""
    place = {query_id: at for at, query_id in enumerate(batch.queries["query_id"].to_list())}
    runs = query_runs(frame)
    found = np.array([place[query_id] for _, query_id in runs], np.uint32)
    return pl.Series(np.repeat(found, [size for size, _ in runs]))


def texts_of(batch: Batch, ids: pl.Series) -> pl.Series:
    """The texts of documents that a batch sees, one for each id; null of one that it does not see."""
    return batch.documents["text"][_rows(batch.documents, ids)]


def rows_of(documents: pl.DataFrame, ids: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of documents of a frame, a row for each id, in their order; null where it has no such document."""
    rows = _rows(documents, ids)
    if len(ids) > _FEW:
        return documents[list(columns)][rows]
    return pl.DataFrame([documents[name][rows] for name in columns])  # no threads are woken


def _rows(documents: pl.DataFrame, ids: pl.Series) -> pl.Series:
    """The row of each id, null where there is no such document."""
    places, count = places_of(documents), len(documents)
    rows = np.fromiter(map(places.get, ids.to_list(), repeat(count)), np.uint32, len(ids))
    is_known = rows < count
    if is_known.all():  # an array is read several times as fast as a list, and holds no null
        return pl.Series(rows)
    told = zip(rows.tolist(), is_known.tolist(), strict=True)
    return pl.Series([row if known else None for row, known in told], dtype=pl.UInt32)


def _filled(found: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    is_found = found["document_id"].is_not_null()
    if is_found.all():
        return found
    return found.select(pl.when(is_found).then(pl.col(name)).otherwise(others[name]) for name in found.columns)


class KeptBeside(Generic[_Held, _Made]):
    """Makes something of an object, and gives the same for that very one again, until the object is gone.

    Safe to use from several threads; two that ask at once may both make it.
    """

    def __init__(self, make: Callable[[_Held], _Made], kept: int) -> None:
        self._make, self._most = make, kept
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[weakref.ref[_Held], _Made]] = OrderedDict()

    def __call__(self, held: _Held) -> _Made:
        key = id(held)
        with self._lock:
            if (known := self._kept.get(key)) is not None and known[0]() is held:
                self._kept.move_to_end(key)
                return known[1]
        made = self._make(held)
        with self._lock:
            self._kept[key] = weakref.ref(held), made
            for gone in [other for other, (one, _) in self._kept.items() if one() is None]:
                del self._kept[gone]
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def _places(documents: pl.DataFrame) -> dict[str, int]:
    """One table serves a frame and those that it has grown into: a turn more is an id more, not all of them again."""
    ids = documents["document_id"]
    with _growing_lock:
        for known, places in reversed(_growing):
            is_its_own = len(places) == len(known) <= len(ids)  # else another frame has grown out of it
            if is_its_own and ids.head(len(known)).equals(known):
                places.update(zip(ids.slice(len(known)).to_list(), range(len(known), len(ids)), strict=True))
                break
        else:
            places = dict(zip(ids.to_list(), range(len(ids)), strict=True))
        _growing.append((ids, places))
    return places


_growing: deque[tuple[pl.Series, dict[str, int]]] = deque(maxlen=4)
"""The ids of the frames whose tables were made last: of a few memories that grow side by side."""
_growing_lock = threading.Lock()
_places_of = KeptBeside(_places, _KEPT)


def places_of(documents: pl.DataFrame) -> Mapping[str, int]:
    """Where each document stands in a frame, by its id; one that came later stands behind its last."""
    return _places_of(documents)
