"""The documents of a workspace in memory: kept in step with its store, read as of one instant."""

import logging
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from lcm.clock import EPOCH
from lcm.errors import StoreError
from lcm.memory.comparison_set import ComparisonSet
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import TextIndex, VectorIndex
from lcm.records.document import DEFAULT_RATING, TURN_KINDS
from lcm.retrieval.indexes import Indexes, embedded_texts, mean_vector
from lcm.store.store import Store

_SANITISED = {"importance": DEFAULT_RATING, "confidence": DEFAULT_RATING}
"""What takes the place of a rating that is no number."""
_MOST_CHUNKS = 32
"""Pieces that the frame may lie in before they are made one."""
_MILLISECOND = timedelta(milliseconds=1)
_log = logging.getLogger(__name__)
_Made = TypeVar("_Made")
_MOST_KEPT = 4
"""Views whose documents and ids are kept."""


class DocumentTimeline:
    """The rows of documents by `valid_from`, ties in the order of adding.

    What is taken in waits until somebody reads: then it is put among the others, once for many changes.
    """

    def __init__(self, documents: pl.DataFrame) -> None:
        """Begin with these; ratings that are no number, which only a foreign hand can store, are replaced."""
        self._settled, self.sanitised = _sanitised(documents)
        self._waiting: list[pl.DataFrame] = []
        self._is_sorted = True
        """Whether what waits stands behind what is settled, and in order."""
        self.ids: set[str] = set(documents["document_id"])
        self.scopes: set[str] = set(documents["scope"].unique())
        self._starts = _milliseconds(documents["valid_from"])
        self._latest = self._starts[-1] if self._starts else None
        self._ends = self._ended(documents)

    @property
    def frame(self) -> pl.DataFrame:
        """Every row."""
        if self._waiting:
            frame = pl.concat([self._settled, *self._waiting])
            self._waiting.clear()
            if not self._is_sorted:
                frame = frame.sort("valid_from", maintain_order=True)
                self._starts = array("q", sorted(self._starts))
                self._is_sorted = True
            self._settled = frame.rechunk() if frame.n_chunks() > _MOST_CHUNKS else frame
        return self._settled

    def take_in(self, changed: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
        """Take in rows that were stored or have ended since: the result is what the whole store would give.

        Args:
            changed: by `valid_from`, ties in the order of adding; no instant of being known has changed.
        Returns:
            The rows that are new, and whether all of them came to stand behind those that were there.
        """
        changed, _ = _sanitised(changed)
        new = changed
        if not self.ids.isdisjoint(changed["document_id"]):
            is_new = pl.Series([document_id not in self.ids for document_id in changed["document_id"]])
            new, ended = changed.filter(is_new), changed.filter(~is_new).select("document_id", "invalidated_at")
            self._settled = self.frame.update(ended, on="document_id", include_nulls=True)
        starts = _milliseconds(new["valid_from"])
        is_behind = not starts or self._latest is None or starts[0] >= self._latest
        if starts:
            self._waiting.append(new)
            self._starts += starts
            self._latest = starts[-1] if self._latest is None else max(self._latest, starts[-1])
        self._is_sorted = self._is_sorted and is_behind
        self.ids.update(new["document_id"])
        self.scopes.update(new["scope"])
        if changed["invalidated_at"].null_count() < len(changed):
            self._ends = self._ended(self.frame)
        return new, is_behind

    def moment(self, at: datetime) -> tuple[int, int]:
        """How many documents had begun and how many had ended then: what is visible at equal moments is the same."""
        _ = self.frame  # else the starts may not be in order
        instant = (at - EPOCH) // _MILLISECOND
        return bisect_right(self._starts, instant), bisect_right(self._ends, instant)

    def of(self, scopes: Sequence[str] | None) -> pl.DataFrame:
        """Every document of these scopes, None = all: those that have ended too."""
        return _of_scopes(self.frame, scopes)

    def visible(self, at: datetime, scopes: Sequence[str] | None) -> pl.DataFrame:
        """The documents of these scopes that stood then."""
        begun, ended = self.moment(at)
        documents = self.frame.head(begun)
        if ended:
            documents = documents.filter(pl.col("invalidated_at").is_null() | (pl.col("invalidated_at") > at))
        return _of_scopes(documents, scopes)

    def folded(self, at: datetime, scopes: Sequence[str] | None) -> pl.DataFrame:
        """The documents of messages of these scopes that had ended by then without another in their place."""
        begun, ended = self.moment(at)
        if not ended:
            return self.frame.clear()
        documents = self.frame.head(begun)
        folded = documents.filter(pl.col("invalidated_at") <= at).filter(  # first: few have ended
            pl.col("kind").is_in(TURN_KINDS),
            ~pl.col("document_id").is_in(documents["supersedes"].drop_nulls().implode()),
        )
        return _of_scopes(folded, scopes)

    def note_use(self, use: pl.DataFrame) -> None:
        """Take in that documents were used: columns document_id, access_count, last_accessed_at, decay_tier."""
        self._settled = self.frame.update(use, on="document_id", include_nulls=True)

    @staticmethod
    def _ended(documents: pl.DataFrame) -> "array[int]":
        return _milliseconds(documents["invalidated_at"].drop_nulls().sort())


def _milliseconds(instants: pl.Series) -> "array[int]":
    """Instants since EPOCH: eight bytes each, of half a million."""
    return array("q", instants.to_physical().to_numpy().tobytes())


def _of_scopes(documents: pl.DataFrame, scopes: Sequence[str] | None) -> pl.DataFrame:
    return documents if scopes is None else documents.filter(pl.col("scope").is_in(list(scopes)))


def _sanitised(documents: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The documents without ratings that are no number, and how many had such."""
    if all(np.isfinite(documents[name].to_numpy()).all() for name in _SANITISED):  # what is null is no number there
        return documents, 0
    broken = ~pl.all_horizontal(pl.col(*_SANITISED).is_finite().fill_null(False))
    count: int = documents.select(broken.sum()).item()
    return documents.with_columns(
        pl.when(pl.col(name).is_finite()).then(name).otherwise(default).alias(name)
        for name, default in _SANITISED.items()
    ), count


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
