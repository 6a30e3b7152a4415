"""Memory: one workspace of a memory system, wired from its parts."""

import hashlib
import logging
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from lcm.encoding import well_formed
from lcm.errors import StoreError
from lcm.instants import EPOCH
from lcm.protocols import (
    Batch,
    Embedder,
    Extraction,
    TextIndexChoice,
    TokenEstimator,
    VectorIndexChoice,
    Vectors,
)
from lcm.ranking.pipeline import RANKED_SCHEMA, TRACE_SCHEMA, Ranking
from lcm.records import Candidate, Document, Message, Query, Transcript
from lcm.store.store import Store

_PART_METHODS = {
    "embedder": "embed",
    "vector_index": "build",
    "text_index": "build",
    "token_estimator": "count",
    "extraction": "extract",
    "ranking": "rank",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class System:
    """The parts of a memory system; `open` gives it a workspace to work on."""

    embedder: Embedder
    vector_index: VectorIndexChoice
    text_index: TextIndexChoice
    token_estimator: TokenEstimator
    extraction: Extraction
    ranking: Ranking

    def __post_init__(self) -> None:
        for name, method in _PART_METHODS.items():
            if not callable(getattr(getattr(self, name), method, None)):
                raise TypeError(f"{name} must have {method}(), got {getattr(self, name)!r}")

    def open(self, path: Path | str = ":memory:") -> "Memory":
        """Open the workspace in the SQLite file `path`, made if missing.

        Its indexes are rebuilt from it; the vectors come from the file that `Memory.close` left beside it, where that
        still fits.
        """
        return Memory(self, Store(path), None if str(path) == ":memory:" else Path(path))


class Memory:
    """One workspace: what was said in it, and what can be found again.

    The store is the truth. The indexes hold its documents and are made from it whenever a workspace is opened, so one
    process at a time should write to a workspace while others hold it open for searching.
    """

    def __init__(self, system: System, store: Store, path: Path | None = None) -> None:
        self.system = system
        self.store = store
        self.vector_index = system.vector_index.build(system.embedder.dim)
        self.text_index = system.text_index.build()
        self._path = path
        self._saved: Path | None = None
        self._catch_up()
        self._remember(store.documents())
        self._fill_indexes()

    def close(self) -> None:
        """Keep the vectors beside the workspace's file, then close it."""
        if self._path is not None and 0 < len(self.vector_index) == len(self._documents):
            file = self._vector_file(self._path)
            if file != self._saved:
                self.vector_index.save(file)
                ours = re.compile(rf"{re.escape(self._path.name)}\.[0-9a-f]{{16}}\.vectors")
                for stale in self._path.parent.iterdir():
                    if ours.fullmatch(stale.name) and stale != file:
                        stale.unlink(missing_ok=True)
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ingest(self, transcript: Transcript) -> int:
        """Take in a transcript, or what is new of it; returns how many messages were new."""
        with self.store.transaction():
            added = self.store.ingest(transcript, self.system.token_estimator)
            if not added:
                return 0
            messages = self.store.messages(transcript.conversation_id)
            self.store.add_documents(self._documents_of(messages, added, transcript.conversation_id))
            documents = self.store.documents()
            known = self._documents["document_id"]
            new = documents.filter(~pl.col("document_id").is_in(known.implode()))
            owners, vectors = self._embedded(new)  # before the commit: what cannot be embedded is not taken in
        self._remember(documents)
        self._add(new, owners, vectors)
        return added

    def rank(
        self, queries: Sequence[Query], ranking: Ranking | None = None, vectors: Vectors | None = None
    ) -> pl.DataFrame:
        """Answer queries: rows query_id, document_id, rank (1-based), score; queries in the order given.

        Args:
            queries: of this workspace; each sees what existed when it was asked, in the scopes that it may read.
            ranking: another ranking than the system's own.
            vectors: the embedded queries, where the caller has them already.
        """
        ranking = ranking or self.system.ranking
        frames = [ranking.rank(batch) for batch in self._batches(queries, ranking, vectors)]
        if not frames:
            return pl.DataFrame(schema=RANKED_SCHEMA)
        if len(frames) == 1:
            return frames[0]
        order = pl.DataFrame({"query_id": [query.query_id for query in queries]}).with_row_index("position")
        return (
            pl.concat(frames)
            .join(order, on="query_id", how="left", maintain_order="left")
            .sort("position", maintain_order=True)
            .drop("position")
        )

    def trace(self, queries: Sequence[Query]) -> pl.DataFrame:
        """Why each document was returned: `Ranking.trace` for these queries."""
        ranking = self.system.ranking
        traces = [ranking.trace(batch) for batch in self._batches(queries, ranking, None)]
        return pl.concat([pl.DataFrame(schema=TRACE_SCHEMA), *traces])

    def search(self, text: str, asked_at: datetime, scopes: Sequence[str] | None = None) -> pl.DataFrame:
        """Answer one question: `rank` with the documents' columns beside, best first.

        Documents that the asker may not see are never returned; BM25's word statistics are those of the whole
        workspace, so scores can depend on them. Replaying a dataset moves time forward instead.
        """
        query = Query("query", text, asked_at, scopes=None if scopes is None else tuple(scopes))
        ranked = self.rank([query]).drop("query_id")
        return ranked.join(self._documents, on="document_id", how="left", maintain_order="left")

    @property
    def documents(self) -> pl.DataFrame:
        """Every document, oldest first; columns as the store names them."""
        return self._documents

    def _batches(self, queries: Sequence[Query], ranking: Ranking, vectors: Vectors | None) -> list[Batch]:
        if len({query.query_id for query in queries}) < len(queries):
            raise ValueError("query ids must differ within one call")
        if not ranking.source.needs_vectors:
            vectors = np.empty((len(queries), 0), dtype=np.float32)
        elif vectors is None:
            vectors = self.system.embedder.embed([well_formed(query.text) for query in queries], "query")
        groups: dict[tuple[int, tuple[str, ...] | None], list[int]] = {}
        for position, query in enumerate(queries):
            groups.setdefault((self._visible_count(query.asked_at), query.scopes), []).append(position)
        return [
            self._batch([queries[i] for i in positions], vectors[positions], count, scopes)
            for (count, scopes), positions in groups.items()
        ]

    def _batch(self, queries: Sequence[Query], vectors: Vectors, count: int, scopes: tuple[str, ...] | None) -> Batch:
        documents = self._documents.head(count)
        if scopes is not None:
            documents = self.store.documents(scopes, created_up_to=max(query.asked_at for query in queries))
        everything = len(documents) == len(self._documents)
        return Batch(
            queries=pl.DataFrame(
                [
                    pl.Series("query_id", [query.query_id for query in queries], pl.String),
                    pl.Series("text", [well_formed(query.text) for query in queries], pl.String),
                    pl.Series("asked_at", [query.asked_at for query in queries], pl.Datetime("ms", "UTC")),
                    pl.Series("conversation_id", [query.conversation_id for query in queries], pl.String),
                    pl.Series("session_id", [query.session_id for query in queries], pl.String),
                ]
            ),
            vectors=vectors,
            documents=documents,
            allowed=None if everything else documents["document_id"].to_list(),
            vector_index=self.vector_index,
            text_index=self.text_index,
            document_vectors=self._document_vectors,
        )

    def _visible_count(self, asked_at: datetime) -> int:
        """How many documents existed then; they are the first ones, for documents are kept oldest first."""
        return bisect_right(self._instants, asked_at)

    def _remember(self, documents: pl.DataFrame) -> None:
        self._documents = documents
        self._instants: list[datetime] = documents["created_at"].to_list()

    def _catch_up(self) -> None:
        """Make the documents of messages that were stored without a memory, as `lcm ingest` does."""
        for conversation_id, covered in self.store.covered().items():
            if self.system.extraction.extract(self.store.messages(conversation_id, covered + 1)):
                messages = self.store.messages(conversation_id)
                documents = self._documents_of(messages, len(messages) - covered, conversation_id)
                self.store.add_documents(documents)

    def _documents_of(self, messages: Sequence[Message], new: int, conversation_id: str) -> list[Document]:
        """The documents of the last `new` messages of a conversation."""
        # A clock may run backwards; what was said later is not known earlier.
        known_at = accumulate((message.created_at or EPOCH for message in messages), max)
        sources = {m.message_id: replace(m, created_at=at) for m, at in zip(messages, known_at, strict=True)}
        candidates = self.system.extraction.extract(messages[-new:])
        tokens = self.system.token_estimator.count([candidate.text for candidate in candidates])
        return [
            _document(candidate, [sources[i] for i in candidate.source_message_ids], conversation_id, count)
            for candidate, count in zip(candidates, tokens, strict=True)
        ]

    def _fill_indexes(self) -> None:
        if self._path is not None and (file := self._vector_file(self._path)).exists():
            try:
                self.vector_index.load(file)
            except StoreError as error:
                _log.warning("%s: made again from the store", error)
            if len(self.vector_index) == len(self._documents):
                self._saved = file
                self._add(self._documents, [], None)
                return
            self.vector_index = self.system.vector_index.build(self.system.embedder.dim)
        self._add(self._documents, *self._embedded(self._documents))

    def _vector_file(self, path: Path) -> Path:
        """Named by what it must hold, so that a stale one is simply not found."""
        content = hashlib.sha256(self.system.embedder.name.encode())
        for document in self._documents["document_id"]:
            content.update(document.encode())
        return path.with_name(f"{path.name}.{content.hexdigest()[:16]}.vectors")

    def _embedded(self, documents: pl.DataFrame) -> tuple[list[str], Vectors | None]:
        """The vectors of documents, one a window, each with the id of its document."""
        if documents.is_empty():
            return [], None
        pieces = self.system.embedder.windows(documents["text"].to_list())
        vectors = self.system.embedder.embed([piece for windows in pieces for piece in windows], "document")
        return [i for i, windows in zip(documents["document_id"], pieces, strict=True) for _ in windows], vectors

    def _add(self, documents: pl.DataFrame, owners: Sequence[str], vectors: Vectors | None) -> None:
        """Put documents into the indexes; without vectors into the text index alone."""
        if documents.is_empty():
            return
        if vectors is not None:
            self.vector_index.add(owners, vectors)
        self.text_index.add(documents["document_id"].to_list(), documents["text"].to_list())

    def _document_vectors(self, document_ids: Sequence[str]) -> Vectors:
        wanted = pl.DataFrame({"document_id": document_ids}, schema={"document_id": pl.String})
        texts = wanted.join(self._documents, on="document_id", how="left", maintain_order="left")["text"].to_list()
        pieces = self.system.embedder.windows(texts)
        vectors = self.system.embedder.embed([piece for windows in pieces for piece in windows], "document")
        starts = np.cumsum([0, *(len(windows) for windows in pieces)])[:-1]
        sums = np.add.reduceat(vectors, starts, axis=0) if len(pieces) else vectors
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return (sums / np.where(norms > 0, norms, 1)).astype(np.float32)


def _document(candidate: Candidate, sources: Sequence[Message], conversation_id: str, tokens: int) -> Document:
    instants = [message.created_at for message in sources if message.created_at is not None]
    return Document(
        document_id=document_id(candidate),
        text=candidate.text,
        source_message_ids=candidate.source_message_ids,
        conversation_id=conversation_id,
        session_id=sources[0].session_id,
        created_at=max(instants),
        kind=candidate.kind,
        category=candidate.category,
        scope=candidate.scope,
        importance=candidate.importance,
        confidence=candidate.confidence,
        temporal_type=candidate.temporal_type,
        valid_until=candidate.valid_until,
        tokens=tokens,
        metadata=candidate.metadata,
    )


def document_id(candidate: Candidate) -> str:
    """Opaque, and the same whenever the same text is made of the same messages."""
    parts = [candidate.kind, candidate.text, *candidate.source_message_ids]
    digest = hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass"))
    return f"doc_{digest.hexdigest()[:16]}"
