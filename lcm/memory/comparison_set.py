"""What a writer compares new candidates with, growing while a transcript is taken in."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.clock import EPOCH
from lcm.protocols.models import Vectors
from lcm.protocols.writing import DocumentSort, Neighbour, Neighbours
from lcm.records.document import Document
from lcm.retrieval.indexing import best_places
from lcm.retrieval.vector_index.exact import contending, cosines, to_grid
from lcm.writing.admission.intake import Change, DocumentAnnotated, DocumentCreated, DocumentEnded

_PRODUCTS = 1 << 22
"""That are made at once at most: 16 MiB."""
_QUERIES = 256
"""Candidates at once at most: each is multiplied alone with the documents that came since."""


class ComparisonSet:
    """Documents of the scopes that a writer can reach, one vector each, and what was decided but not stored yet."""

    def __init__(
        self,
        documents: pl.DataFrame,
        vectors: Vectors,
        read: Callable[[str], Document],
        readable: Sequence[str] | None,
    ) -> None:
        """Begin with what is stored.

        Args:
            documents: of the readable scopes, those that have ended too; columns as the store names them.
            vectors: shape (n, dim), row i of document i.
            read: gives a stored document whole.
            readable: the scopes that the writer can read; None = all.
        """
        self._read = read
        self._readable = None if readable is None else frozenset(readable)
        self._dim = vectors.shape[1]
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._columns = _Columns.empty(self._dim)
        self._sorts: dict[DocumentSort, int] = {}
        self._documents: dict[str, Document] = {}
        self._asked: _Asked | None = None
        self._expected: _Expected | None = None
        self._add_frame(documents, vectors)

    def branch(self) -> "ComparisonSet":
        """A set that begins with what is in this one, and leaves this one as it is.

        The vectors are shared: this one must not grow while a branch is in use, and of branches only the newest may.
        """
        other = copy(self)
        other._read = self.document
        other._ids, other._places, other._sorts = self._ids.copy(), self._places.copy(), self._sorts.copy()
        other._columns = replace(self._columns, has_ended=self._columns.has_ended.copy())
        other._documents = {}
        other._expected = None
        return other

    def expect(self, vectors: Sequence[Vectors]) -> None:
        """Say what `nearest` will be asked for, in order: many products at once take a tenth of the time of each."""
        self._expected = _Expected(vectors, to_grid(np.concatenate(vectors), self._dim)) if vectors else None

    def add_stored(self, documents: pl.DataFrame, vectors: Vectors) -> None:
        """Take in documents that were stored behind those in the set; arguments as of the constructor."""
        if self._readable is not None:
            is_readable = documents["scope"].is_in(list(self._readable))
            documents, vectors = documents.filter(is_readable), vectors[is_readable.to_numpy()]
        if not documents.is_empty():
            self._add_frame(documents, vectors)

    def reread(self, document_ids: Sequence[str]) -> None:
        """Ask the store again for documents that have changed there, whether they have ended too."""
        for document_id in document_ids:
            self._documents.pop(document_id, None)
            if document_id in self._places:
                has_ended = self.document(document_id).invalidated_at is not None
                self._columns.has_ended[self._places[document_id]] = has_ended

    def known_at(self, now: datetime) -> Neighbours:
        return _ComparisonAt(self, now)

    def nearest(
        self, vector: Vectors, k: int, now: datetime, active_only: bool, only: Callable[[DocumentSort], bool] | None
    ) -> list[Neighbour]:
        """The k nearest of the documents that existed then, best first, ties in the order of adding."""
        count, asked = len(self._ids), self._products(vector)
        compared = self._columns.starts[:count] <= _microseconds(now)
        if active_only:
            compared &= ~self._columns.has_ended[:count]
        if only is not None:
            compared &= np.array([only(sort) for sort in self._sorts], bool)[self._columns.sorts[:count]]
        places = np.flatnonzero(compared)
        rough = asked.products if len(places) == count else asked.products[places]
        places = places[contending(rough, k, self._dim)]
        (scores,) = cosines(asked.query, self._columns.rows[places])
        best = best_places(scores, k)
        near = zip(places[best].tolist(), scores[best].tolist(), strict=True)
        return [Neighbour(self.document(self._ids[place]), score) for place, score in near]

    def document(self, document_id: str) -> Document:
        """A document as it stands now."""
        if document_id not in self._documents:
            self._documents[document_id] = self._read(document_id)
        return self._documents[document_id]

    def stands(self, document_id: str) -> bool:
        place = self._places.get(document_id)
        return place is not None and not self._columns.has_ended[place]

    def apply(self, changes: Sequence[Change]) -> None:
        """Make changes visible to what is compared next; storing them is another's business."""
        for change in changes:
            match change:
                case DocumentCreated(document, vector):
                    self._create(document, vector)
                case DocumentEnded(document_id, at):
                    self._columns.has_ended[self._places[document_id]] = True
                    self._documents[document_id] = replace(self.document(document_id), invalidated_at=at)
                case DocumentAnnotated(document_id, metadata):
                    known = self.document(document_id)
                    self._documents[document_id] = replace(known, metadata={**known.metadata, **metadata})

    def _create(self, document: Document, vector: Vectors | None) -> None:
        """Add a document; without a vector it is near to nothing. One that is there already stays as it is.

        An agent may write where it cannot read: what it wrote there is hidden from it at once.
        """
        is_hidden = self._readable is not None and document.scope not in self._readable
        if is_hidden or document.document_id in self._places:
            return
        sort = DocumentSort(document.role, document.kind, document.is_durable)
        row = np.zeros((1, self._dim), np.float32) if vector is None else vector
        self._add([document.document_id], row, [document.valid_from or document.created_at], [False], [sort])
        self._documents[document.document_id] = document

    def _add_frame(self, documents: pl.DataFrame, vectors: Vectors) -> None:
        sorts = [DocumentSort(*row) for row in documents.select(DocumentSort._fields).iter_rows()]
        has_ended = documents["invalidated_at"].is_not_null().to_list()
        self._add(documents["document_id"].to_list(), vectors, documents["valid_from"].to_list(), has_ended, sorts)

    def _add(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        starts: Sequence[datetime],
        has_ended: Sequence[bool],
        sorts: Sequence[DocumentSort],
    ) -> None:
        first, end = len(self._ids), len(self._ids) + len(ids)
        self._columns = self._columns.with_room(end)
        self._columns.rows[first:end] = to_grid(vectors, self._dim)
        self._columns.starts[first:end] = [_microseconds(start) for start in starts]
        self._columns.has_ended[first:end] = has_ended
        self._columns.sorts[first:end] = [self._sorts.setdefault(sort, len(self._sorts)) for sort in sorts]
        self._ids.extend(ids)
        self._places.update(zip(ids, range(first, end), strict=True))
        self._asked = None

    def _products(self, vector: Vectors) -> "_Asked":
        """With all documents, rounded; a rule may ask several times about one candidate."""
        if self._asked is None or self._asked.vector is not vector:
            rows = self._columns.rows[: len(self._ids)]
            found = None if self._expected is None else self._expected.products(vector, rows)
            if found is None:
                query = to_grid(vector, self._dim)
                found = query, rows @ query[0]
            self._asked = _Asked(vector, *found)
        return self._asked


class _Asked(NamedTuple):
    """A vector as it is compared, and its products with all documents."""

    vector: Vectors
    query: Vectors
    products: npt.NDArray[np.float32]


class _Expected:
    """Vectors that will be asked for, and the products of the next of them with the documents that were there."""

    def __init__(self, vectors: Sequence[Vectors], queries: Vectors) -> None:
        self._places = {id(vector): place for place, vector in enumerate(vectors)}
        self._vectors, self._queries = vectors, queries  # held, so that no other has their identity
        self._first, self._known = 0, np.empty((0, 0), np.float32)

    def products(self, vector: Vectors, rows: Vectors) -> tuple[Vectors, npt.NDArray[np.float32]] | None:
        """The vector as it is compared, and its products with rows; None of one that is not expected.

        Args:
            rows: of the documents, those that were there at the last call before all others.
        """
        place = self._places.get(id(vector))
        if place is None:
            return None
        if not self._first <= place < self._first + len(self._known):
            some = self._queries[place : place + min(_QUERIES, max(1, _PRODUCTS // max(1, len(rows))))]
            self._first, self._known = place, some @ rows.T
        query, known = self._queries[place : place + 1], self._known[place - self._first]
        return query, np.concatenate([known, rows[len(known) :] @ query[0]])


@dataclass(frozen=True, slots=True)
class _Columns:
    """What is compared of documents, a row each, with room for more."""

    rows: Vectors
    starts: npt.NDArray[np.int64]
    """Microseconds."""
    has_ended: npt.NDArray[np.bool_]
    sorts: npt.NDArray[np.int64]
    """The place of each document's sort among all sorts."""

    @classmethod
    def empty(cls, dim: int) -> "_Columns":
        return cls(np.empty((0, dim), np.float32), np.empty(0, np.int64), np.empty(0, bool), np.empty(0, np.int64))

    def with_room(self, count: int) -> "_Columns":
        if count <= len(self.rows):
            return self
        room = max(64, 2 * count)
        return _Columns(*(_grown(column, room) for column in (self.rows, self.starts, self.has_ended, self.sorts)))


@dataclass(frozen=True, slots=True)
class _ComparisonAt:
    """A comparison set as of an instant."""

    documents: ComparisonSet
    now: datetime

    def nearest(
        self, vector: Vectors, k: int, *, active_only: bool, only: Callable[[DocumentSort], bool] | None = None
    ) -> list[Neighbour]:
        return self.documents.nearest(vector, k, self.now, active_only, only)


def _grown(column: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    grown = np.zeros((room, *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)
