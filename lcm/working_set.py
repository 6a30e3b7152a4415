"""What a writer may compare new candidates with, growing while a transcript is taken in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from lcm.protocols import Neighbour, Vectors
from lcm.records import Document
from lcm.vector_index.exact import cosines, to_grid


class WorkingSet:
    """Documents of the scopes that a writer can reach, one vector each, with what was decided but not stored yet.

    `at` sets the clock: what is known only later is not compared with.
    """

    def __init__(self, documents: pl.DataFrame, vectors: Vectors, read: Callable[[str], Document], dim: int) -> None:
        """Begin with what is stored.

        Args:
            documents: of the readable scopes, those that have ended too; columns as the store names them.
            vectors: shape (n, dim), row i of document i.
            read: gives a stored document whole.
            dim: of the vectors.
        """
        self._read = read
        self._dim = dim
        self._now: datetime | None = None
        self._ids: list[str] = documents["document_id"].to_list()
        self._starts: list[datetime] = documents["valid_from"].to_list()
        self._places = {document_id: place for place, document_id in enumerate(self._ids)}
        self._documents: dict[str, Document] = {}
        self._ends: dict[int, datetime] = {
            place: end for place, end in enumerate(documents["invalidated_at"].to_list()) if end is not None
        }
        self._rows = to_grid(vectors, dim).astype(np.float64)
        self.created: list[Document] = []
        """What was added since, in order."""
        self.ended: list[tuple[str, datetime]] = []
        self.notes: dict[str, dict[str, Any]] = {}
        """Metadata put onto documents since, by id."""

    def at(self, now: datetime) -> "WorkingSet":
        """Set the clock."""
        self._now = now
        return self

    def nearest(self, vector: Vectors, k: int, *, active_only: bool) -> list[Neighbour]:
        assert self._now is not None, "the clock is set before anything is compared"
        count = len(self._ids)
        if not count or k < 1:
            return []
        scores = cosines(to_grid(vector, self._dim), self._rows[:count])[0]
        found: list[Neighbour] = []
        for place in _descending(scores, k + len(self._ends) + len(self.created)):
            end = self._ends.get(place)
            if self._starts[place] > self._now or (active_only and end is not None and end <= self._now):
                continue
            found.append(Neighbour(self.document(self._ids[place]), float(scores[place])))
            if len(found) == k:
                break
        return found

    def document(self, document_id: str) -> Document:
        """A document as it stands now."""
        if document_id not in self._documents:
            self._documents[document_id] = self._read(document_id)
        return self._documents[document_id]

    def create(self, document: Document, vector: Vectors | None) -> None:
        """Add a document; without a vector nothing will be found near it. One that is there already stays as it is."""
        if document.document_id in self._places:
            return
        place = len(self._ids)
        if place == len(self._rows):
            grown = np.zeros((max(64, 2 * place), self._dim))
            grown[:place] = self._rows
            self._rows = grown
        self._rows[place] = 0 if vector is None else to_grid(vector, self._dim)[0]
        self._places[document.document_id] = place
        self._ids.append(document.document_id)
        self._starts.append(document.valid_from or document.created_at)
        self._documents[document.document_id] = document
        self.created.append(document)

    def end(self, document_id: str, at: datetime) -> None:
        """Let another document stand in the place of one from `at` on."""
        self._ends[self._places[document_id]] = at
        self._documents[document_id] = replace(self.document(document_id), invalidated_at=at)
        self.ended.append((document_id, at))

    def annotate(self, document_id: str, metadata: Mapping[str, Any]) -> None:
        """Put keys into the metadata of a document."""
        document = self.document(document_id)
        self._documents[document_id] = replace(document, metadata={**document.metadata, **metadata})
        self.notes.setdefault(document_id, {}).update(metadata)


def _descending(scores: "np.ndarray[Any, np.dtype[np.float64]]", k: int) -> Sequence[int]:
    """The places of the k largest, ties by place."""
    if k >= len(scores):
        order = np.argsort(-scores, kind="stable")
    else:
        nearest = np.argpartition(-scores, k - 1)[:k]
        bound = scores[nearest].min()
        candidates = np.flatnonzero(scores >= bound)
        order = candidates[np.argsort(-scores[candidates], kind="stable")]
    places: list[int] = order.tolist()
    return places
