"""How long each operation takes as a workspace grows."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks import corpus
from benchmarks.timing import Prepare, median_seconds
from lcm.checks import check_range
from lcm.memory.live_documents import asked_frame
from lcm.protocols.models import TokenEstimator, Vectors
from lcm.protocols.retrieval import Batch, TextIndex, VectorIndex
from lcm.records.conversation import Transcript
from lcm.records.document import Document
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.text_index import Bm25s, Fts5
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.store.store import Store


@dataclass(frozen=True, slots=True)
class Curve:
    """The seconds of one operation at each size, or what else it costs."""

    family: str
    operation: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    unit: str = "s"
    """Of `seconds`, where they are none."""

    @property
    def exponent(self) -> float | None:
        """The slope of the line through the points, both axes logarithmic: 1 = linear; None for a single size."""
        if len(self.sizes) < 2:
            return None
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


@dataclass(frozen=True, slots=True)
class Growth:
    """Every operation at every size; a message is a document, and vectors are drawn rather than embedded.

    The graph of `hnsw` is built whatever its `exact_below` says. Searches and ranking answer `queries` in one call.
    """

    token_estimator: TokenEstimator
    exact: Exact
    hnsw: Hnsw
    fts5: Fts5
    bm25s: Bm25s
    ranking: Ranking
    sizes: Sequence[int]
    queries: int
    k: int
    dim: int

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 2 or len(set(self.sizes)) < len(self.sizes):
            raise ValueError(f"sizes must be different numbers of documents >= 2, got {list(self.sizes)}")
        check_range(self, "queries", "k", "dim", ge=1)

    def run(self, repeats: int, seed: int, progress: Callable[[str, int, int], None]) -> list[Curve]:
        sizes = sorted(self.sizes)
        list(self._operations(sizes[0], 1, seed))  # warms up
        seconds: dict[tuple[str, str], list[float]] = {}
        for done, size in enumerate(sizes):
            progress("growth", done, len(sizes))
            for family, operation, taken in self._operations(size, repeats, seed):
                seconds.setdefault((family, operation), []).append(taken)
        progress("growth", len(sizes), len(sizes))
        return [Curve(*names, tuple(sizes), tuple(taken)) for names, taken in seconds.items()]

    def _operations(self, size: int, repeats: int, seed: int) -> Iterator[tuple[str, str, float]]:
        """Family, operation and seconds of each."""

        def timed(family: str, operation: str, prepare: Prepare[object]) -> tuple[str, str, float]:
            return family, operation, median_seconds(prepare, repeats)

        transcript = corpus.transcript(size + repeats, seed)
        queries = corpus.queries(self.queries, seed)
        documents = [_document(message.content, i, transcript) for i, message in enumerate(transcript.messages[:size])]
        ids, texts = [d.document_id for d in documents], [d.text for d in documents]
        vectors = corpus.unit_vectors(size, self.dim, seed)
        query_vectors = corpus.unit_vectors(self.queries, self.dim, seed + 1)

        with tempfile.TemporaryDirectory() as folder:
            work = _StoreWork(Path(folder), transcript, size, self.token_estimator, documents)
            yield timed("store", "ingest", work.ingest)
            yield timed("store", "append one message", work.append)
            yield timed("store", "add_documents", work.add_documents)
            yield timed("store", "documents", work.documents)
            frame = work.store.documents()
            work.store.close()

        indexes: dict[str, Any] = {}

        def index(name: str, build: Callable[[], Any], rows: Any, asked: Any, family: str) -> Iterator[Any]:
            def add() -> Callable[[], None]:
                index = indexes[name] = build()

                def work() -> None:
                    index.add(ids, rows)
                    if family == "lexical search":
                        index.search(asked[:1], 1)  # bm25s computes its columns when it is first asked

                return work

            yield timed("index", f"{name} add", add)
            yield timed(family, f"{name} search", lambda: lambda: indexes[name].search(asked, self.k))

        for name, vector_choice in (("exact", self.exact), ("hnsw", replace(self.hnsw, exact_below=0))):
            build = partial(vector_choice.build, self.dim, incidents=Counter())
            yield from index(name, build, vectors, query_vectors, "dense search")
        asked = [query.text for query in queries]
        for name, text_choice in (("fts5", self.fts5), ("bm25s", self.bm25s)):
            yield from index(name, text_choice.build, texts, asked, "lexical search")

        batch = _batch(queries, query_vectors, frame, indexes["exact"], indexes["fts5"])
        found = _FixedSource(self.ranking.source.candidates(batch))
        stages = replace(self.ranking, source=found)
        yield timed("ranking", "rank, behind the source", lambda: lambda: stages.rank(batch))


class _StoreWork:
    """What a store is asked to do, in this order; every ingest into a new file, the rest on the last one."""

    def __init__(
        self,
        folder: Path,
        transcript: Transcript,
        size: int,
        token_estimator: TokenEstimator,
        documents: Sequence[Document],
    ) -> None:
        self._files = (folder / f"{number}.db" for number in count())
        self._transcript, self._token_estimator = transcript, token_estimator
        self._first = replace(transcript, messages=transcript.messages[:size])
        self._sizes = count(size + 1)
        self._documents = documents
        self.store = Store(next(self._files))

    def ingest(self) -> Callable[[], object]:
        self.store.close()
        self.store = Store(next(self._files))
        return lambda: self.store.ingest(self._first, self._token_estimator)

    def append(self) -> Callable[[], object]:
        """The same transcript, one message longer each time."""
        longer = replace(self._transcript, messages=self._transcript.messages[: next(self._sizes)])
        return lambda: self.store.ingest(longer, self._token_estimator)

    def add_documents(self) -> Callable[[], object]:
        file = next(self._files)
        self.store.close()
        self.store = Store(file)
        self.store.ingest(self._first, self._token_estimator)
        return lambda: self.store.add_documents(self._documents)

    def documents(self) -> Callable[[], pl.DataFrame]:
        return self.store.documents


@dataclass(frozen=True, slots=True)
class _FixedSource:
    """A source whose candidates are known."""

    frame: pl.DataFrame

    def candidates(self, batch: Batch) -> pl.DataFrame:
        return self.frame


def _document(text: str, number: int, transcript: Transcript) -> Document:
    message = transcript.messages[number]
    return Document(
        document_id=f"d{number}",
        text=text,
        source_message_ids=(message.message_id,),
        conversation_id=transcript.conversation_id,
        session_id=message.session_id,
        created_at=message.created_at or corpus.START,
    )


def _batch(
    queries: Sequence[Query], vectors: Vectors, documents: pl.DataFrame, dense: VectorIndex, lexical: TextIndex
) -> Batch:
    """All documents are visible to all queries."""
    return Batch(
        queries=asked_frame(queries),
        vectors=vectors,
        documents=documents,
        allowed=None,
        vector_index=dense,
        text_index=lexical,
        document_vectors=_no_vectors,
    )


def _no_vectors(document_ids: Sequence[str]) -> Vectors:
    raise ValueError("growth is measured without an embedder: choose a ranking that needs no document's vector")
