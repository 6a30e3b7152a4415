"""Live queries: whose embedder they use, and how many are asked."""

from collections.abc import Sequence

import pytest

from eval.measures.latency import Latency
from lcm.memory.memory import Memory
from lcm.protocols import TextKind, Vectors
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


@pytest.mark.parametrize("warmup", [0, 2])
def test_warmup_queries_are_asked_and_not_timed(warmup: int) -> None:
    given, own, asked = Noting(), Noting(), queries()
    with Memory.open(system(embedder=own)) as memory:
        memory.ingest(transcript())
        samples = Latency(warmup_queries=warmup).measure(memory, given, asked)
    texts = [query.text for query in asked]
    assert len(samples) == len(asked)
    assert len(given.queries) == warmup + len(texts)
    assert given.queries[warmup:] == texts


def test_live_queries_are_never_embedded_by_the_memorys_own_embedder() -> None:
    given, own = Noting(), Noting()
    with Memory.open(system(embedder=own)) as memory:
        memory.ingest(transcript())
        Latency().measure(memory, given, queries())
        assert own.queries == []
        memory.rank(queries())
        assert len(own.queries) == len(queries())


def test_a_measured_memory_answers_as_before() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        indexes, before = (memory.vector_index, memory.text_index), memory.rank(queries())
        Latency().measure(memory, Noting(), queries())
        assert (memory.vector_index, memory.text_index) == indexes
        assert memory.rank(queries()).equals(before)


def test_the_chosen_queries_are_spread_evenly() -> None:
    asked = queries([str(i) for i in range(10)])
    assert [query.text for query in Latency(queries=4).chosen(asked)] == ["0", "3", "6", "9"]
    assert Latency(queries=10).chosen(asked) == asked
    assert Latency(queries=0).chosen(asked) == []


def test_other_queries_warm_up_where_there_are_some() -> None:
    given, (first, *others) = Noting(), queries()
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        samples = Latency(warmup_queries=1).measure(memory, given, [first], others)
    assert len(samples) == 1
    assert given.queries == [others[0].text, first.text]
