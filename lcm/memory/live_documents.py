"""The documents of a workspace in memory: kept in step with its store, read as of one instant."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from lcm.errors import StoreError
from lcm.memory.comparison_set import ComparisonSet
from lcm.memory.document_timeline import DocumentTimeline
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import TextIndex, VectorIndex
from lcm.retrieval.indexes import Indexes, embedded_texts, mean_vector
from lcm.store.store import Store

_log = logging.getLogger(__name__)
_Made = TypeVar("_Made")
_MOST_KEPT = 4
"""Views whose documents and ids are kept."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What a transaction has changed of the documents in the store."""

    windows: Mapping[str, Vectors] = field(default_factory=dict)
    """The vectors of each new document, by its id: one row a window."""
    changed_ids: Sequence[str] = ()
    """Ids of the older documents that have ended or were annotated."""
    use: pl.DataFrame | None = None
    """Older documents that were used: columns document_id, access_count, last_accessed_at, decay_tier."""


@dataclass(frozen=True, slots=True)
class DocumentView:
    """The documents of a workspace as of one instant, and for one set of scopes."""

    visible: pl.DataFrame
    """Those that stood then, oldest first; columns as the store names them."""
    folded: pl.DataFrame
    """Those of messages that had ended by then without another in their place: they stand behind a summary."""
    scopes: Sequence[str] | None
    """Which scopes are read; None = all."""
    live: "LiveDocuments"

    @property
    def vector_index(self) -> VectorIndex:
        return self.live.indexes.vector_index

    def allowed_ids(self, documents: pl.DataFrame) -> tuple[str, ...] | None:
        """The ids of some of the view's documents as a filter for the indexes; None where these hold nothing else."""
        return None if self._is_everything(documents) else tuple(documents["document_id"].to_list())

    def text_index(self, documents: pl.DataFrame) -> TextIndex:
        """The text index that may be asked for some of the view's documents: over no words but those of its scopes."""
        return self.live.text_index(None if self._is_everything(documents) else self.scopes)

    def _is_everything(self, documents: pl.DataFrame) -> bool:
        return len(documents) == len(self.live.frame)


class LiveDocuments:
    """Every document of a store, kept in memory in each form that is asked for.

    Holds the rows by the time from which they stand, what a writer compares new documents with, the vector index and
    the text indexes, and the version of the file that all of these are of. They change together: through `apply` by
    what this process has written, through `follow` by what another has.
    """

    def __init__(
        self, store: Store, indexes: Indexes, incidents: Counter[str], indexes_beside: Path | None = None
    ) -> None:
        """Read every document of the store into indexes that are still empty.

        Args:
            incidents: counts what was survived.
            indexes_beside: the file beside which the indexes may have been kept; None = they are made anew.
        """
        self.store = store
        self.indexes = indexes
        self.incidents = incidents
        self.version = store.written_elsewhere()
        """Rises when another process has written to the file, and this one has taken that in."""
        self._timeline = DocumentTimeline(store.documents())
        if broken := self._timeline.sanitised:
            _log.warning("%d documents had ratings that are no number: 0.7 stands in for them", broken)
            self.incidents["ratings that are no number"] += broken
        self._comparison: tuple[Sequence[str] | None, ComparisonSet] | None = None
        self._kept: tuple[pl.DataFrame | None, dict[Hashable, Any]] = None, {}
        self.indexes.fill(self.frame, indexes_beside)

    @property
    def frame(self) -> pl.DataFrame:
        """Every document by `valid_from`, those that have ended too; columns as the store names them."""
        return self._timeline.frame

    def text_index(self, scopes: Sequence[str] | None) -> TextIndex:
        """The text index over the documents of these scopes; None = all."""
        return self.indexes.text_index(scopes, self.frame)

    def moment(self, asked_at: datetime) -> tuple[int, int]:
        """How many documents had begun and how many had ended then: views of equal moments and scopes are equal."""
        return self._timeline.moment(asked_at)

    def told_apart(self, scopes: Sequence[str] | None) -> Sequence[str] | None:
        """The scopes, where some document lies in no one of them; else None: nothing need be left out."""
        return None if scopes is None or self._timeline.scopes.issubset(scopes) else scopes

    def view(self, asked_at: datetime, scopes: Sequence[str] | None) -> DocumentView:
        """The documents as of an instant, of the scopes that may be read; None = all."""
        scopes = self.told_apart(scopes)
        visible, folded = self._timeline.visible(asked_at, scopes), self._timeline.folded(asked_at, scopes)
        return DocumentView(visible, folded, scopes, self)

    def kept(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What `make` makes of the documents: made once for a key, while no document changes and few others are asked
        for. Live queries come one at a time, and most see what the one before saw."""
        frame, kept = self._kept
        if frame is not self.frame:
            kept = {}
        found: _Made = kept[key] if key in kept else make()
        others = [(other, one) for other, one in kept.items() if other != key]
        self._kept = self.frame, dict([*others[1 - _MOST_KEPT :], (key, found)])
        return found

    def standing(self, document_ids: Collection[str]) -> set[str]:
        """Those of these documents that are stored and have not ended."""
        if not document_ids:
            return set()
        stored = self.store.documents(list(document_ids))
        return set(stored.filter(pl.col("invalidated_at").is_null())["document_id"])

    def comparison_set(self, readable: Sequence[str] | None) -> ComparisonSet:
        """What a writer compares new documents with, to grow by them: the documents of the scopes that it can read."""
        if self._comparison is None or self._comparison[0] != readable:
            documents = self._timeline.of(readable)
            vectors = self.indexes.vector_index.vectors_of(documents["document_id"].to_list())
            self._comparison = readable, ComparisonSet(documents, vectors, self.store.document, readable)
        return self._comparison[1].branch()

    @contextmanager
    def writing(self) -> Iterator[list[DocumentChange]]:
        """One transaction over the documents as they stand in the file now.

        Whoever writes in it puts what that changes into the list: it is applied once it is committed.
        """
        changes: list[DocumentChange] = []
        with self.store.transaction():
            self.follow()
            yield changes
        if len(changes) > 1 and all(change.use is None for change in changes):
            self._take_in_together(changes)
            return
        for change in changes:
            self.apply(change)

    def apply(self, change: DocumentChange) -> None:
        """Take in what was committed to the store."""
        if change.windows or change.changed_ids:
            self._take_in(change)
        if change.use is not None:
            self._timeline.note_use(change.use)
            if self._comparison is not None:
                self._comparison[1].reread(change.use["document_id"].to_list())

    def follow(self) -> None:
        """Take in what another process has written since, before this one compares with it or adds to it.

        Raises:
            StoreError: if it has taken documents away, which the indexes cannot forget.
        """
        version = self.store.written_elsewhere()
        if version == self.version:
            return
        timeline = DocumentTimeline(self.store.documents())
        if gone := len(self._timeline.ids - timeline.ids):
            raise StoreError(f"another process has removed {gone} documents from the workspace: open it again")
        new = timeline.frame.filter(~pl.col("document_id").is_in(list(self._timeline.ids)))
        windows = self.indexes.embed(embedded_texts(new))
        self._timeline, self._comparison = timeline, None
        self.indexes.add(new, windows)
        self.version = version

    def _take_in(self, change: DocumentChange) -> None:
        rows = self.store.documents([*change.windows, *change.changed_ids])
        new, is_behind = self._timeline.take_in(rows)
        windows = [change.windows[document_id] for document_id in new["document_id"]]
        self.indexes.add(new, windows)
        if not is_behind:
            self._comparison = None
        elif self._comparison is not None:
            if windows:
                self._comparison[1].add_stored(new, np.concatenate([mean_vector(one) for one in windows]))
            self._comparison[1].reread(change.changed_ids)

    def _take_in_together(self, changes: Sequence[DocumentChange]) -> None:
        """Take in several changes: what one after another would leave, read from the store at once."""
        ids = [name for change in changes for name in (*change.windows, *change.changed_ids)]
        new, _ = self._timeline.take_in(self.store.documents(ids))
        self._comparison = None
        for change in changes:
            part = new.filter(pl.col("document_id").is_in(list(change.windows)))
            self.indexes.add(part, [change.windows[document_id] for document_id in part["document_id"]])
