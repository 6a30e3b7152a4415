"""Pools by whose a document is."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl
import pytest

from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.by_scope import ByScope, pooled
from lcm.retrieval.source.indexes import Dense, branch, describe
from tests.lcm.refusals import assert_refused
from tests.support import kinds

WHOLE = ByScope(*[None] * 6)
NAMES = ("session", "guidance", "durable", "global", "authored", "dream")
NOTHING = ByScope(**{f"{name}_pool_size": 1 if name == "session" else 0 for name in NAMES})


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with kinds.workspace() as opened:
        yield opened


def found(memory: Memory, source: ByScope | Dense, *query_ids: str) -> pl.DataFrame:
    """Described candidates of these questions, or of all."""
    asked = [query for query in kinds.questions() if not query_ids or query.query_id in query_ids]
    return pl.concat(
        describe(source.candidates(batch), batch) for batch in memory.batches(asked, Ranking(source), None)
    )


def only(name: str) -> ByScope:
    """One pool, whole."""
    return ByScope(**{f"{pool}_pool_size": None if pool == name else 0 for pool in NAMES})


def pools(memory: Memory, source: ByScope, query_id: str) -> dict[str, int]:
    """How many rows came of each pool, in the order of the first of each."""
    rows = found(memory, source, query_id).select(
        pl.when(pl.col("kind").is_in(["guidance", "authored", "dream"]))
        .then("kind")
        .otherwise(pl.col("scope_class").cast(pl.String))
    )
    return {name: len(part) for (name,), part in rows.group_by("kind", maintain_order=True)}


def test_each_pool_has_its_size_and_its_place(memory: Memory) -> None:
    assert list(pools(memory, ByScope(5, 4, 3, 2, 6, 7), "own").items()) == [
        *(("session", 5), ("guidance", 4), ("durable", 3), ("global", 2), ("authored", 6)),
    ]
    assert pools(memory, NOTHING, "own") == {"session": 1}
    whole = pools(memory, replace(WHOLE, durable_pool_size=0), "own")
    assert whole["session"] == kinds.PLACES
    assert "durable" not in whole
    assert set(pools(memory, WHOLE, "of nobody")) == {"guidance", "durable", "global", "authored"}
    assert set(pools(memory, WHOLE, "own, of one user")) == {"session", "guidance", "durable", "authored"}


def test_summaries_stand_with_what_they_summarise(memory: Memory) -> None:
    rows = found(memory, WHOLE, "own", "vague").filter(kind="summary")
    assert dict(rows.select("query_id", pl.col("scope_class").cast(pl.String)).unique().iter_rows()) == {
        "own": "durable",
        "vague": "session",
    }


def test_a_question_about_dreams_sees_dreams_alone_and_no_other_sees_any(memory: Memory) -> None:
    rows = found(memory, WHOLE)
    of_dreams = pl.col("query_id") == "dream"
    assert set(rows.filter(of_dreams)["kind"]) == {"dream"}
    assert "dream" not in set(rows.filter(~of_dreams)["kind"])
    assert pools(memory, ByScope(dream_pool_size=3), "dream") == {"dream": 3}
    assert found(memory, NOTHING, "dream").is_empty()


def test_where_nobody_dreamt_a_question_about_dreams_is_answered_as_any_other(memory: Memory) -> None:
    [asked] = [query for query in kinds.questions() if query.query_id == "dream"]
    (batch,) = memory.batches([replace(asked, text="where is the kettle")], Ranking(WHOLE), None)
    dreaming = replace(batch, queries=batch.queries.with_columns(text=pl.lit(asked.text)))
    assert "dream" not in set(batch.documents["kind"])
    assert len(WHOLE.candidates(dreaming))
    assert WHOLE.candidates(dreaming).equals(WHOLE.candidates(batch))


def test_who_names_a_conversation_alone_has_its_documents_of_his_own(memory: Memory) -> None:
    [own] = [query for query in kinds.questions() if query.query_id == "own"]
    (batch,) = memory.batches([replace(own, session_id=None, conversation_id="talk")], Ranking(WHOLE), None)
    rows = describe(only("session").candidates(batch), batch)
    ordinary = batch.documents.filter(pl.col("kind").is_in(["message", "summary"]), conversation_id="talk")
    assert set(rows["document_id"]) == set(ordinary["document_id"])
    assert len(rows) > 2 * kinds.PLACES  # both sessions of it, and summaries


def test_pools_are_those_of_the_scope_classes(memory: Memory) -> None:
    """What the pools are made by, and what stages are told of each row, must not part."""
    for query in kinds.questions():
        for name in ("session", "durable", "global"):
            assert set(found(memory, only(name), query.query_id)["scope_class"].cast(pl.String)) <= {name}


def test_whole_pools_are_what_the_index_finds(memory: Memory) -> None:
    for query_id in ("own", "elsewhere", "of nobody", "nothing"):
        ours, theirs = found(memory, WHOLE, query_id), found(memory, Dense(), query_id)
        theirs = theirs.filter(pl.col("kind") != "dream").select("document_id", "cosine")
        assert ours.select("document_id", "cosine").sort("document_id").equals(theirs.sort("document_id"))
        assert ours.sort("dense_rank")["cosine"].is_sorted(descending=True)


def test_of_a_document_found_twice_the_first_row_stays() -> None:
    pool = branch([(["a", "b"], [0.5, 0.4])], "cosine", "dense_rank")
    other = branch([(["b", "c"], [0.9, 0.8])], "cosine", "dense_rank")
    assert pooled([pool, other]).rows() == [(0, "a", 0.5, 2), (0, "b", 0.4, 3), (0, "c", 0.8, 1)]


def test_a_query_that_could_not_be_embedded_is_refused(memory: Memory) -> None:
    (batch,) = memory.batches(kinds.questions()[:1], Ranking(WHOLE), None)
    broken: Batch = replace(batch, embedding_error=LcmError("no model"))
    with pytest.raises(LcmError, match="no model"):
        WHOLE.candidates(broken)


def test_impossible_sizes_are_refused() -> None:
    assert_refused(ByScope, "be >= 0 or null", global_pool_size=-1)
    with pytest.raises(ValueError, match="the pool sizes must not all be 0: raise one"):
        ByScope(0, 0, 0, 0, 0, 0)


def test_an_index_of_several_widths_says_which_answered(memory: Memory) -> None:
    class Widths:
        def __init__(self) -> None:
            self.index = memory.live.indexes.vector_index

        def search_tiers(self, vectors, k, allowed=None):
            width = 64 if allowed is None or len(allowed) > kinds.PLACES else 256
            return [(ids, cosines, width) for ids, cosines in self.index.search(vectors, k, allowed)]

    (batch,) = memory.batches(kinds.questions()[:1], Ranking(WHOLE), None)
    rows = describe(WHOLE.candidates(replace(batch, vector_index=Widths())), batch)  # type: ignore[arg-type]
    widths = rows.group_by("scope_class", maintain_order=True).agg(pl.col("index_tier").unique())
    assert widths.filter(pl.col("scope_class") == "session")["index_tier"].to_list() == [[256]]
    assert rows["index_tier"].null_count() == 0
