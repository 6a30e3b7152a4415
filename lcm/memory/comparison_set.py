"""What a writer compares new candidates with, growing while a transcript is taken in."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.models import Vectors
from lcm.protocols.writing import Neighbour, Neighbours
from lcm.records.document import Document
from lcm.retrieval.vector_index.exact import cosines, to_grid
from lcm.writing.admission.changes import Change, DocumentAnnotated, DocumentCreated, DocumentEnded


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
        self._rows: npt.NDArray[np.float64] = to_grid(vectors, self._dim).astype(np.float64)
        self._ids: list[str] = documents["document_id"].to_list()
        self._starts: list[datetime] = documents["valid_from"].to_list()
        self._has_ended: list[bool] = documents["invalidated_at"].is_not_null().to_list()
        self._places = {document_id: place for place, document_id in enumerate(self._ids)}
        self._documents: dict[str, Document] = {}
        self._nearest: tuple[Vectors, npt.NDArray[np.float64], list[int]] | None = None

    def branch(self) -> "ComparisonSet":
        """A set that begins with what is in this one, and leaves this one as it is.

        The vectors are shared: this one must not grow while a branch is in use, and of branches only the newest may.
        """
        other = copy(self)
        other._read = self.document
        other._ids, other._starts = self._ids.copy(), self._starts.copy()
        other._has_ended, other._places = self._has_ended.copy(), self._places.copy()
        other._documents = {}
        return other

    def add_stored(self, documents: pl.DataFrame, vectors: Vectors) -> None:
        """Take in documents that were stored behind those in the set; arguments as of the constructor."""
        if self._readable is not None:
            is_readable = documents["scope"].is_in(list(self._readable))
            documents, vectors = documents.filter(is_readable), vectors[is_readable.to_numpy()]
        if documents.is_empty():
            return
        first, end = len(self._ids), len(self._ids) + len(documents)
        self._reserve(end)
        self._rows[first:end] = to_grid(vectors, self._dim)
        self._ids.extend(documents["document_id"])
        self._starts.extend(documents["valid_from"])
        self._has_ended.extend(documents["invalidated_at"].is_not_null())
        self._places.update(zip(self._ids[first:], range(first, end), strict=True))
        self._nearest = None

    def reread(self, document_ids: Sequence[str]) -> None:
        """Ask the store again for documents that have changed there, whether they have ended too."""
        for document_id in document_ids:
            self._documents.pop(document_id, None)
            if document_id in self._places:
                self._has_ended[self._places[document_id]] = self.document(document_id).invalidated_at is not None

    def known_at(self, now: datetime) -> Neighbours:
        return _ComparisonAt(self, now)

    def nearest(self, vector: Vectors, now: datetime, active_only: bool) -> Iterator[Neighbour]:
        """The documents that existed then, nearest first, ties in the order of adding."""
        if self._nearest is None or self._nearest[0] is not vector:  # a rule may ask twice about one candidate
            found = cosines(to_grid(vector, self._dim), self._rows[: len(self._ids)])[0]
            self._nearest = vector, found, np.argsort(-found, kind="stable").tolist()
        _, scores, order = self._nearest
        for place in order:
            if self._starts[place] <= now and not (active_only and self._has_ended[place]):
                yield Neighbour(self.document(self._ids[place]), float(scores[place]))

    def document(self, document_id: str) -> Document:
        """A document as it stands now."""
        if document_id not in self._documents:
            self._documents[document_id] = self._read(document_id)
        return self._documents[document_id]

    def stands(self, document_id: str) -> bool:
        place = self._places.get(document_id)
        return place is not None and not self._has_ended[place]

    def apply(self, changes: Sequence[Change]) -> None:
        """Make changes visible to what is compared next; storing them is another's business."""
        for change in changes:
            match change:
                case DocumentCreated(document, vector):
                    self._create(document, vector)
                case DocumentEnded(document_id, at):
                    self._has_ended[self._places[document_id]] = True
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
        place = len(self._ids)
        self._reserve(place + 1)
        self._rows[place] = 0 if vector is None else to_grid(vector, self._dim)[0]
        self._places[document.document_id] = place
        self._ids.append(document.document_id)
        self._starts.append(document.valid_from or document.created_at)
        self._has_ended.append(False)
        self._documents[document.document_id] = document
        self._nearest = None

    def _reserve(self, count: int) -> None:
        if count > len(self._rows):
            grown = np.zeros((max(64, 2 * count), self._dim))
            grown[: len(self._rows)] = self._rows
            self._rows = grown


@dataclass(frozen=True, slots=True)
class _ComparisonAt:
    """A comparison set as of an instant."""

    documents: ComparisonSet
    now: datetime

    def nearest(
        self, vector: Vectors, k: int, *, active_only: bool, only: Callable[[Document], bool] | None = None
    ) -> list[Neighbour]:
        found = self.documents.nearest(vector, self.now, active_only)
        if only is not None:
            found = (near for near in found if only(near.document))
        return [near for near, _ in zip(found, range(k), strict=False)]
