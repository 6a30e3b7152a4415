"""The laws of `Source`, over every YAML of its group."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.protocols.contract import INDEXES, contract_of
from lcm.protocols.retrieval import Source
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import CANDIDATE_SCHEMA, filled, further_branches
from pipelines.config import building
from tests.support.composing import composed
from tests.support.richest import once_a_class
from tests.support.workspaces import LINES, lived_in, minute, queries, questions, system, transcript


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory.open(system()) as opened:
        opened.ingest(transcript())
        yield opened


@pytest.fixture(params=once_a_class("source"))
def source(request: pytest.FixtureRequest) -> Source:
    return building.build(composed([f"source={request.param}"]), "source")


def candidates(memory: Memory, source: Source, **change: object) -> object:
    asked = [replace(query, **change) for query in queries()]
    (batch,) = memory.batches(asked, Ranking(source), None)
    return source.candidates(batch), batch


def test_a_source_returns_the_candidate_frame(memory: Memory, source: Source) -> None:
    frame, batch = candidates(memory, source)
    assert dict(list(frame.schema.items())[: len(CANDIDATE_SCHEMA)]) == CANDIDATE_SCHEMA
    further = dict(list(frame.schema.items())[len(CANDIDATE_SCHEMA) :])
    assert {name for name, kind in further.items() if kind == pl.Int64} == {
        f"{name}_rank" for name in further_branches(frame)
    }
    assert all(name.endswith(("_rank", "_cosine", "_bm25", "_score", "_contained")) for name in further)
    assert len(frame) > 0
    assert not frame.select("query_id", "document_id").is_duplicated().any()
    assert set(frame["query_id"]) <= set(batch.queries["query_id"])
    assert frame["query_id"].rle_id().n_unique() == frame["query_id"].n_unique(), "the rows of a query stand together"
    assert frame.equals(source.candidates(batch))


def test_a_source_returns_only_visible_documents(memory: Memory, source: Source) -> None:
    frame, batch = candidates(memory, source, asked_at=minute(4))
    assert 0 < len(batch.documents) < len(LINES)
    assert set(frame["document_id"]) <= set(batch.documents["document_id"])


def test_a_source_returns_nothing_of_an_unreadable_scope(memory: Memory, source: Source) -> None:
    frame, batch = candidates(memory, source, scopes=("agent:other",))
    assert batch.documents.is_empty()
    assert frame.is_empty()


def test_ranks_are_one_based_and_rise(memory: Memory, source: Source) -> None:
    frame, _ = candidates(memory, source)
    for column in ("dense_rank", "lexical_rank", *(f"{name}_rank" for name in further_branches(frame))):
        for _, rows in frame.drop_nulls(column).group_by("query_id"):
            assert sorted(rows[column]) == list(range(1, len(rows) + 1))


def test_a_source_answers_each_query_alone(source: Source) -> None:
    with lived_in() as memory:
        (together,) = memory.batches(questions(), Ranking(source), None)
        alone = [memory.batches([query], Ranking(source), None)[0] for query in questions()]
        apart = pl.concat([source.candidates(batch) for batch in alone])
        assert source.candidates(together).equals(apart)


def test_a_source_asks_the_indexes_and_fills_the_columns_that_it_names(memory: Memory, source: Source) -> None:
    frame, batch = candidates(memory, source)
    without = replace(batch, **{index: None for index in INDEXES if index not in contract_of(source).asks})
    assert source.candidates(without).equals(frame)
    for column in ("cosine", "bm25"):
        assert (column in filled(source)) == frame[column].is_not_null().any()
