"""The documents of a workspace in memory: in step with its store, read as of an instant, compared with new ones; and
queries in batches: those that may see the same documents are ranked together."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.clock import END_OF_CLOCKS, EPOCH
from lcm.encoding import well_formed
from lcm.errors import LcmError, StoreError, UnrecordedReplyError
from lcm.faults import is_of_machine
from lcm.limits import QUERY_CHARACTERS
from lcm.memory.scopes import Scopes, parse_agent_id
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch, TextIndex
from lcm.protocols.writing import DocumentSort, Neighbour, Neighbours
from lcm.records.document import DEFAULT_RATING, TURN_KINDS, Document, category_named
from lcm.records.query import Query
from lcm.retrieval.indexes import Indexes, embedded_texts, mean_vector
from lcm.retrieval.indexing import best_places
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA
from lcm.retrieval.vector_index.exact import contending, cosines, to_grid
from lcm.store.documents import count_unrated
from lcm.store.store import Store
from lcm.writing.admission.intake import Change, DocumentAnnotated, DocumentCreated, DocumentEnded
from lcm.writing.dream import asks_for_dreams, in_sight

_PRODUCTS = 1 << 22
"""That are made at once at most: 16 MiB."""
_QUERIES = 256
"""Candidates at once at most: each is multiplied alone with the documents that came since."""
_MOST_CHUNKS = 32
"""Pieces that the frame may lie in before they are made one."""
_log = logging.getLogger(__name__)
_Made = TypeVar("_Made")
_MOST_KEPT = 4
"""Views whose documents and ids are kept."""


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
        self._sorts: dict[DocumentSort, int] = {}
        self._documents: dict[str, Document] = {}
        # A row a document, with room for more; the instants are microseconds.
        self._rows: Vectors = np.empty((0, self._dim), np.float32)
        self._starts, self._sorts_of = np.empty(0, np.int64), np.empty(0, np.int64)
        self._has_ended = np.empty(0, bool)
        self._products: dict[int, _Products] = {}
        self._expected: list[Vectors] = []
        self._add_frame(documents, vectors)

    def branch(self) -> "ComparisonSet":
        """A set that begins with what is in this one, and leaves this one as it is.

        The vectors are shared: this one must not grow while a branch is in use, and of branches only the newest may.
        """
        other = copy(self)
        other._read = self.document
        other._ids, other._places, other._sorts = self._ids.copy(), self._places.copy(), self._sorts.copy()
        other._has_ended = self._has_ended.copy()
        other._documents, other._products, other._expected = {}, {}, []
        return other

    def expect(self, vectors: Sequence[Vectors]) -> None:
        """Say what `nearest` will be asked for, in order: many products at once take a tenth of the time of each."""
        self._expected = list(vectors)

    def add_stored(self, documents: pl.DataFrame, vectors: Vectors) -> None:
        """Take in documents that were stored behind those in the set; arguments as of the constructor."""
        if self._readable is not None:
            is_readable = documents["scope"].is_in(list(self._readable))
            documents, vectors = documents.filter(is_readable), vectors[is_readable.to_numpy()]
        self._add_frame(documents, vectors)

    def reread(self, document_ids: Sequence[str]) -> None:
        """Ask the store again for documents that have changed there, whether they have ended too."""
        for document_id in document_ids:
            self._documents.pop(document_id, None)
            if document_id in self._places:
                has_ended = self.document(document_id).invalidated_at is not None
                self._has_ended[self._places[document_id]] = has_ended

    def known_at(self, now: datetime) -> Neighbours:
        return _ComparisonAt(self, now)

    def nearest(
        self, vector: Vectors, k: int, now: datetime, active_only: bool, only: Callable[[DocumentSort], bool] | None
    ) -> list[Neighbour]:
        """The k nearest of the documents that existed then, best first, ties in the order of adding."""
        count, asked = len(self._ids), self._asked(vector)
        compared = self._starts[:count] <= _microseconds(now)
        if active_only:
            compared &= ~self._has_ended[:count]
        if only is not None:
            compared &= np.array([only(sort) for sort in self._sorts], bool)[self._sorts_of[:count]]
        places = np.flatnonzero(compared)
        places = places[contending(asked.products[places], k, self._dim)]
        (scores,) = cosines(asked.query, self._rows[places])
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
        if end > len(self._rows):
            room = max(64, 2 * end)
            self._rows, self._starts = _grown(self._rows, room), _grown(self._starts, room)
            self._has_ended, self._sorts_of = _grown(self._has_ended, room), _grown(self._sorts_of, room)
        self._rows[first:end] = to_grid(vectors, self._dim)
        self._starts[first:end] = [_microseconds(start) for start in starts]
        self._has_ended[first:end] = has_ended
        self._sorts_of[first:end] = [self._sorts.setdefault(sort, len(self._sorts)) for sort in sorts]
        self._ids.extend(ids)
        self._places.update(zip(ids, range(first, end), strict=True))

    def _asked(self, vector: Vectors) -> "_Products":
        """A vector's products with all documents, rounded: made with those of the vectors that are expected next."""
        rows = self._rows[: len(self._ids)]
        if id(vector) not in self._products:
            place = next((place for place, one in enumerate(self._expected) if one is vector), None)
            at_once = min(_QUERIES, max(1, _PRODUCTS // max(1, len(rows))))
            some = [vector] if place is None else self._expected[place : place + at_once]
            queries = to_grid(np.concatenate(some), self._dim)
            made = zip(some, queries, queries @ rows.T, strict=True)
            self._products = {id(one): _Products(one, query[np.newaxis], known) for one, query, known in made}
        held, query, known = self._products[id(vector)]
        return _Products(held, query, np.concatenate([known, rows[len(known) :] @ query[0]]))


class _Products(NamedTuple):
    """A vector, held so that no other has its identity; as it is compared; and its products with documents."""

    vector: Vectors
    query: Vectors
    products: npt.NDArray[np.float32]


class _ComparisonAt(NamedTuple):
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


def _milliseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


class DocumentTimeline:
    """The rows of documents by `valid_from`, ties in the order of adding."""

    def __init__(self, documents: pl.DataFrame) -> None:
        self.frame = documents
        """Every row."""
        self.ids: set[str] = set(documents["document_id"])
        self.scopes: set[str] = set(documents["scope"].unique())
        self._counted: tuple[pl.DataFrame | None, Any, Any] = (None, None, None)

    def take_in(self, changed: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
        """Take in rows that were stored or have ended since: the result is what the whole store would give.

        Args:
            changed: by `valid_from`, ties in the order of adding; no instant of being known has changed.
        Returns:
            The rows that are new, and whether all of them came to stand behind those that were there.
        """
        new = changed
        if not self.ids.isdisjoint(new["document_id"]):
            is_new = pl.Series([document_id not in self.ids for document_id in new["document_id"]])
            new, ended = new.filter(is_new), new.filter(~is_new).select("document_id", "invalidated_at")
            self.frame = self.frame.update(ended, on="document_id", include_nulls=True)
        if new.is_empty():
            return new, True
        is_behind = self.frame.is_empty() or new.item(0, "valid_from") >= self.frame.item(-1, "valid_from")
        frame = pl.concat([self.frame, new])
        if not is_behind:
            frame = frame.sort("valid_from", maintain_order=True)
        self.frame = frame.rechunk() if frame.n_chunks() > _MOST_CHUNKS else frame
        self.ids.update(new["document_id"])
        self.scopes.update(new["scope"])
        return new, is_behind

    def moment(self, at: datetime) -> tuple[int, int]:
        """How many documents had begun and how many had ended then: what is visible at equal moments is the same."""
        if self._counted[0] is not self.frame:
            starts, ends = (self.frame[name].drop_nulls().sort() for name in ("valid_from", "invalidated_at"))
            self._counted = self.frame, starts.to_physical().to_numpy(), ends.to_physical().to_numpy()
        begun, ended = (int(np.searchsorted(some, _milliseconds(at), "right")) for some in self._counted[1:])
        return begun, ended

    def told_apart(self, scopes: Sequence[str] | None) -> Sequence[str] | None:
        """The scopes, where some document lies in no one of them; else None: nothing need be left out."""
        return None if scopes is None or self.scopes.issubset(scopes) else scopes

    def of(self, scopes: Sequence[str] | None, documents: pl.DataFrame | None = None) -> pl.DataFrame:
        """Every document of these scopes, None = all, or some of them: those that have ended too."""
        found, scopes = self.frame if documents is None else documents, self.told_apart(scopes)
        return found if scopes is None else found.filter(pl.col("scope").is_in(list(scopes)))

    def visible(self, at: datetime, scopes: Sequence[str] | None) -> pl.DataFrame:
        """The documents of these scopes that stood then, oldest first."""
        begun, ended = self.moment(at)
        documents = self.frame.head(begun)
        if ended:
            documents = documents.filter(pl.col("invalidated_at").is_null() | (pl.col("invalidated_at") > at))
        return self.of(scopes, documents)

    def folded(self, at: datetime, scopes: Sequence[str] | None) -> pl.DataFrame:
        """The documents of messages of these scopes that had ended by then without another in their place: they stand
        behind a summary."""
        begun, ended = self.moment(at)
        if not ended:
            return self.frame.clear()
        documents = self.frame.head(begun)
        folded = documents.filter(pl.col("invalidated_at") <= at).filter(  # first: few have ended
            pl.col("kind").is_in(TURN_KINDS),
            ~pl.col("document_id").is_in(documents["supersedes"].drop_nulls().implode()),
        )
        return self.of(scopes, folded)


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What a transaction has changed of the documents in the store."""

    windows: Mapping[str, Vectors] = field(default_factory=dict)
    """The vectors of each new document, by its id: one row a window."""
    changed_ids: Sequence[str] = ()
    """Ids of the older documents that have ended or were annotated."""


class LiveDocuments:
    """Every document of a store, kept in memory in each form that is asked for.

    Holds the rows by the time from which they stand, what a writer compares new documents with, the vector index and
    the text indexes, and the version of the file that all of these are of. They change together: through `writing` by
    what this process writes, through `follow` by what another has.
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
        self.timeline = DocumentTimeline(store.documents())
        with store.reading() as connection:
            unrated = count_unrated(connection)
        if unrated:
            _log.warning("%d documents had ratings that are no number: %s stands in for them", unrated, DEFAULT_RATING)
            self.incidents["ratings that are no number"] += unrated
        self._comparison: tuple[Sequence[str] | None, ComparisonSet] | None = None
        self._kept: tuple[pl.DataFrame | None, dict[Hashable, Any]] = None, {}
        self.derived: dict[Hashable, Any] = {}
        """What stages keep of the documents, as `Batch.derived` says."""
        self.indexes.fill(self.frame, indexes_beside)

    @property
    def frame(self) -> pl.DataFrame:
        """Every document by `valid_from`, those that have ended too; columns as the store names them."""
        return self.timeline.frame

    def text_index(self, scopes: Sequence[str] | None) -> TextIndex:
        """The text index over the documents of these scopes; None = all."""
        return self.indexes.text_index(scopes, self.frame)

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
            documents = self.timeline.of(readable)
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
        self._take_in(changes)

    def note_use(self, use: pl.DataFrame) -> None:
        """Take in that documents were used: columns document_id, access_count, last_accessed_at, decay_tier."""
        self.timeline.frame = self.frame.update(use, on="document_id", include_nulls=True)
        if self._comparison is not None:
            self._comparison[1].reread(use["document_id"].to_list())

    def follow(self) -> None:
        """Take in what another process has written since, before this one compares with it or adds to it.

        Raises:
            StoreError: if it has taken documents away, which the indexes cannot forget.
        """
        version = self.store.written_elsewhere()
        if version == self.version:
            return
        timeline = DocumentTimeline(self.store.documents())
        if gone := len(self.timeline.ids - timeline.ids):
            raise StoreError(f"another process has removed {gone} documents from the workspace: open it again")
        new = timeline.frame.filter(~pl.col("document_id").is_in(list(self.timeline.ids)))
        windows = self.indexes.embed(embedded_texts(new))
        self.timeline, self._comparison = timeline, None
        self.indexes.add(new, windows)
        self.version = version

    def _take_in(self, changes: Sequence[DocumentChange]) -> None:
        """Take in what was committed to the store, of several changes what one after another would leave."""
        ids = [name for change in changes for name in (*change.windows, *change.changed_ids)]
        if not ids:
            return
        new, is_behind = self.timeline.take_in(self.store.documents(ids))
        for change in changes:
            part = new if len(changes) == 1 else new.filter(pl.col("document_id").is_in(list(change.windows)))
            windows = [change.windows[document_id] for document_id in part["document_id"]]
            self.indexes.add(part, windows)
        if not is_behind or len(changes) > 1:
            self._comparison = None
        elif self._comparison is not None:
            if windows:
                self._comparison[1].add_stored(new, np.concatenate([mean_vector(one) for one in windows]))
            self._comparison[1].reread(changes[0].changed_ids)


def query_batches(
    live: LiveDocuments,
    queries: Sequence[Query],
    rules: Scopes,
    embedder: Embedder | None,
    vectors: Vectors | None,
) -> list[Batch]:
    """Put queries that may see the same documents into one batch, in the order of the first of each.

    Args:
        live: the documents of the workspace that is asked.
        queries: each sees what existed when it was asked, in the scopes that it may read.
        rules: which scopes a conversation reads.
        embedder: embeds the queries where `vectors` lacks them; None = the ranking needs no vectors.
        vectors: row i embeds query i.
    """
    check(queries)
    vectors, error = _embedded(queries, embedder, vectors)
    groups: dict[Hashable, list[int]] = {}
    by_session = not live.frame["is_durable"].all()
    for position, query in enumerate(queries):
        session = (query.session_id, query.conversation_id) if by_session else None
        moment, about_dreams = live.timeline.moment(query.asked_at), asks_for_dreams(query.text)
        seen = _told_scopes(query, rules), live.timeline.told_apart(readable_scopes(query, rules))
        key = (moment, *seen, query.only_category, query.shown_message_ids, session, about_dreams)
        groups.setdefault(key, []).append(position)
    batches = []
    for seen_by, places in groups.items():
        first, asked = queries[places[0]], [queries[place] for place in places]
        readable = live.timeline.told_apart(readable_scopes(first, rules))
        documents, turns, allowed = live.kept(seen_by, partial(_seen, live, first, readable))
        batches.append(
            Batch(
                queries=asked_frame(asked),
                vectors=vectors[places],
                documents=documents,
                allowed=allowed,
                vector_index=live.indexes.vector_index,
                text_index=live.text_index(None if len(documents) == len(live.frame) else readable),
                document_vectors=live.indexes.vector_index.vectors_of,
                embedding_error=error,
                incidents=live.incidents,
                derived=live.derived,
                scopes=_told_scopes(first, rules),
                is_in_session=bool(first.shown_message_ids) and (first.session_id or first.conversation_id) is not None,
                turns=turns,
            )
        )
    return batches


def readable_scopes(query: Query, rules: Scopes) -> tuple[str, ...] | None:
    """The scopes that a query reads: those that it names, else those of its conversation; without one all."""
    if query.scopes is not None or query.conversation_id is None:
        return query.scopes
    return rules.conversation_readable(query.conversation_id)


def _told_scopes(query: Query, rules: Scopes) -> tuple[str, ...] | None:
    """The scopes that a query reads by its host's word or as an agent's; None of anybody's."""
    is_anybody = query.scopes is None and parse_agent_id(query.conversation_id or "") is None
    return None if is_anybody else readable_scopes(query, rules)


def in_order(frames: Sequence[pl.DataFrame], queries: Sequence[Query]) -> pl.DataFrame:
    """The rows of several batches, queries in the order given."""
    if len(frames) < 2:
        return frames[0] if frames else pl.DataFrame(schema=RANKED_SCHEMA)
    order = pl.DataFrame({"query_id": [query.query_id for query in queries]}).with_row_index("position")
    placed = pl.concat(frames).join(order, on="query_id", how="left", maintain_order="left")
    return placed.sort("position", maintain_order=True).drop("position")


def check(queries: Sequence[Query]) -> None:
    """Refuse queries that cannot be answered.

    Raises:
        ValueError: if two have one id, or one has no instant between 1970 and 2099 or no list of scopes.
        LimitError: if one is longer than any that is answered.
    """
    if len({query.query_id for query in queries}) < len(queries):
        raise ValueError("query ids must differ within one call")
    for query in queries:
        QUERY_CHARACTERS.check(f"the text of query {query.query_id!r}", len(query.text))
        if query.asked_at.tzinfo is None:
            raise ValueError(f"asked_at of query {query.query_id!r} needs a time zone, got {query.asked_at!r}")
        if not EPOCH <= query.asked_at < END_OF_CLOCKS:
            raise ValueError(
                f"asked_at of query {query.query_id!r} must lie in the years 1970-2099, got "
                f"{query.asked_at.isoformat()}: is the clock set, and are milliseconds not taken for seconds?"
            )
        if isinstance(query.scopes, str):
            raise ValueError(f"scopes of query {query.query_id!r} must be a list of scopes, got {query.scopes!r}")


def _embedded(
    queries: Sequence[Query], embedder: Embedder | None, vectors: Vectors | None
) -> tuple[Vectors, LcmError | None]:
    """A vector a query, and why there are none; whether it can do without is for the source to say."""
    none = np.empty((len(queries), 0), dtype=np.float32)
    if embedder is None:
        return none, None
    if vectors is not None:
        return vectors, None
    try:
        return embedder.embed([well_formed(query.text) for query in queries], "query"), None
    except LcmError as error:
        if is_of_machine(error) or isinstance(error, UnrecordedReplyError):
            raise
        return none, error


def _seen(
    live: LiveDocuments, first: Query, readable: Sequence[str] | None
) -> tuple[pl.DataFrame, pl.DataFrame | None, tuple[str, ...] | None]:
    """The documents and turns that queries like the first are answered from, and the ids that the indexes may give."""
    found = pl.concat([live.timeline.visible(first.asked_at, readable), live.timeline.folded(first.asked_at, readable)])
    documents = in_sight(found, first.text)
    if first.only_category is not None:
        documents = documents.filter(category=category_named(first.only_category) or first.only_category)
    if first.shown_message_ids:
        shown = pl.lit(pl.Series([list(first.shown_message_ids)])).first()
        hidden = pl.col("source_message_ids").list.set_difference(shown).list.len() == 0
        documents = documents.filter(~hidden | (pl.col("source_message_ids").list.len() == 0))
    # Behind a summary, or another session's: no answer, but turns that recovery may fetch.
    turns = documents.clear()
    if documents["invalidated_at"].null_count() < len(documents):  # else no row need be copied
        has_ended = pl.col("invalidated_at").fill_null(END_OF_CLOCKS) <= first.asked_at
        turns, documents = documents.filter(has_ended), documents.filter(~has_ended)
    if not documents["is_durable"].all():
        own = (
            pl.col("session_id") == first.session_id
            if first.session_id is not None
            else pl.col("conversation_id") == (first.conversation_id or "")
        )
        turns = pl.concat([turns, documents.filter(~pl.col("is_durable") & ~own)])
        documents = documents.filter(pl.col("is_durable") | own)
    allowed = None if len(documents) == len(live.frame) else tuple(documents["document_id"].to_list())
    return documents, None if turns.is_empty() else turns, allowed


def asked_frame(queries: Sequence[Query]) -> pl.DataFrame:
    """Queries as `Batch.queries` holds them."""
    columns = ("query_id", "text", "asked_at", "conversation_id", "session_id", "caller")
    values = {name: [getattr(query, name) for query in queries] for name in columns}
    values["text"] = [well_formed(text) for text in values["text"]]
    values["asked_at"] = [_milliseconds(at) for at in values["asked_at"]]  # Polars reads datetimes ten times as long
    schema = {**dict.fromkeys(columns, pl.String), "asked_at": pl.Int64}
    return pl.DataFrame(values, schema).cast({"asked_at": pl.Datetime("ms", "UTC")})
