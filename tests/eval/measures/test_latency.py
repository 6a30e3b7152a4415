"""Live queries: whose embedder they use, and how many are asked."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.measures.latency import Latency
from eval.measures.measure import MemoryReading
from lcm.memory.memory import Memory
from lcm.protocols.models import TextKind, Vectors
from lcm.records.query import Query
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing
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
    dataset = Dataset("tiny", "tiny", "0", (), tuple(asked), pl.DataFrame(schema=QRELS_SCHEMA))
    return latency.of_memory(MemoryReading(memory, asked, pl.DataFrame(), {}, dataset))


@pytest.mark.parametrize("warmup", [0, 2])
def test_warmup_queries_are_asked_and_not_timed(warmup: int) -> None:
    own, asked = Noting(), queries()
    with Memory.open(system(embedder=own)) as memory:
        memory.ingest(transcript())
        rows = measured(Latency(warmup_queries=warmup), memory, asked)
    texts = [query.text for query in asked]
    assert len(rows) == len(asked)
    assert len(own.queries) == warmup + len(texts)
    assert own.queries[warmup:] == texts


def test_live_queries_are_embedded_anew_where_the_memory_keeps_their_vectors(tmp_path: Path) -> None:
    own = Noting()
    with Memory.open(system(embedder=CachedEmbedder(own, tmp_path))) as memory:
        memory.ingest(transcript())
        memory.rank(queries())
        memory.rank(queries())
        assert len(own.queries) == len(queries())
        measured(Latency(warmup_queries=0), memory, queries())
        assert len(own.queries) == 2 * len(queries())


def test_a_measured_memory_answers_as_before() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        indexes, before = (memory.vector_index, memory.text_index), memory.rank(queries())
        measured(Latency(), memory, queries())
        assert (memory.vector_index, memory.text_index) == indexes
        assert memory.rank(queries()).equals(before)


def test_the_chosen_queries_are_spread_evenly() -> None:
    asked = queries([str(i) for i in range(10)])
    assert [query.text for query in Latency(queries=4).chosen(asked)] == ["0", "3", "6", "9"]
    assert Latency(queries=10).chosen(asked) == asked
    assert Latency(queries=0).chosen(asked) == []


def test_other_queries_warm_up_where_there_are_some() -> None:
    own, (first, *others) = Noting(), queries()
    with Memory.open(system(embedder=own)) as memory:
        memory.ingest(transcript())
        rows = measured(Latency(queries=1, warmup_queries=1), memory, [first, *others])
    assert len(rows) == 1
    assert own.queries == [others[0].text, first.text]
