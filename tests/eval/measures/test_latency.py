"""Live queries: whose embedder they use, and how many are asked."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from eval.measures.latency import Latency
from eval.measures.measure import MemoryReading
from lcm.memory.memory import Memory
from lcm.protocols.models import TextKind, Vectors
from lcm.records.query import Query
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing
from tests.eval.tiny import tiny
from tests.support.workspaces import queries, system, transcript


class Noting:
    """The model-free embedder, noting the queries that it embeds."""

    def __init__(self) -> None:
        self.inner = Hashing()
        self.queries: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        self.queries += texts if kind == "query" else []
        return self.inner.embed(texts, kind)


def measured(latency: Latency, memory: Memory, asked: Sequence[Query]) -> pl.DataFrame:
    return latency.rows(MemoryReading(memory, asked, pl.DataFrame(), {}, tiny([], asked)))


def test_warmup_queries_are_asked_before_and_are_others_where_there_are_some() -> None:
    own, asked = Noting(), queries()
    with Memory.open(system(embedder=own)) as memory:
        memory.ingest(transcript())
        indexes, before = (memory.live.indexes.vector_index, memory.live.text_index(None)), memory.rank(asked)
        for latency, embedded in (
            (Latency(warmup_queries=2), asked),
            (Latency(queries=1, warmup_queries=1), asked[:1]),
        ):
            own.queries.clear()
            assert len(measured(latency, memory, asked)) == len(embedded)
            assert own.queries[latency.warmup_queries :] == [query.text for query in embedded]
        assert own.queries == [asked[1].text, asked[0].text]
        assert (memory.live.indexes.vector_index, memory.live.text_index(None)) == indexes
        assert memory.rank(asked).equals(before)


def test_live_queries_are_embedded_anew_where_the_memory_keeps_their_vectors(tmp_path: Path) -> None:
    own = Noting()
    with Memory.open(system(embedder=CachedEmbedder(own, tmp_path))) as memory:
        memory.ingest(transcript())
        memory.rank(queries())
        memory.rank(queries())
        assert len(own.queries) == len(queries())
        measured(Latency(warmup_queries=0), memory, queries())
        assert len(own.queries) == 2 * len(queries())


def test_the_chosen_queries_are_spread_evenly() -> None:
    asked = queries([str(i) for i in range(10)])
    assert [query.text for query in Latency(queries=4).chosen(asked)] == ["0", "3", "6", "9"]
    assert Latency(queries=10).chosen(asked) == asked
    assert Latency(queries=0).chosen(asked) == []
