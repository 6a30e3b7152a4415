"""More words, substrings, and one branch answering for two."""

import sqlite3
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest

from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import Hybrid, Lexical, QueryExpansion, Tagged, with_containment
from tests.lcm.refusals import assert_refused
from tests.support.workspaces import minute, queries, system, transcript


def test_a_query_gains_the_words_of_the_groups_that_it_names() -> None:
    shouted = "GIT PUSH\u0130"  # its lower case has a letter more
    assert QueryExpansion().expand(shouted, "manual") == f"{shouted} 推送 commit"
    assert QueryExpansion().expand(shouted, "auto") == shouted
    assert QueryExpansion(most=2).expand("it crashed", "cli") == "it crashed 崩溃 error"
    assert_refused(QueryExpansion, "be >= 1", most=0)


def test_a_query_that_no_word_answers_is_looked_for_inside_texts() -> None:
    lines = ["overheard in the kitchens", "the other one", "mother of pearl", "heard"]
    with Memory.open(system()) as memory:
        memory.ingest(transcript(lines))
        (batch,) = memory.batches(
            [Query("q", "  OTHER  ", minute(600)), Query("p", "rheard", minute(600))], Ranking(Lexical()), None
        )
        found = Lexical(containment=True).candidates(batch)
        assert Lexical().candidates(batch)["query_id"].to_list() == ["q"]
        (row,) = found.filter(query_id="p").to_dicts()
        assert (row["bm25"], row["lexical_rank"]) == (None, 1)
        assert row["contained"] == pytest.approx(0.72 + 0.02 * len("rheard"))
        assert found.filter(query_id="q")["contained"].is_null().all()  # a word answered it


def test_substrings_are_worth_less_in_an_overview_and_newer_texts_come_first() -> None:
    documents = pl.DataFrame(
        {
            "document_id": ["in overview", "old", "new", "without"],
            "text": ["x", "aa zebra", "zebras", "x"],
            "overview": ["ZEBRA", "", "", ""],
            "content": ["", "", "", ""],
            "created_at": [minute(i) for i in range(4)],
        }
    )
    rows = pl.DataFrame(
        schema={"query": pl.UInt32, "document_id": pl.String, "bm25": pl.Float64, "lexical_rank": pl.Int64}
    )
    found = with_containment(rows, [(0, "zebra")], documents, 2)
    assert found["document_id"].to_list() == ["new", "old"]
    (third,) = with_containment(rows, [(0, "zebra")], documents, 9).tail(1).to_dicts()
    assert third["contained"] == pytest.approx((0.72 + 0.02 * 5) * 0.92)
    assert with_containment(rows, [(0, "  ")], documents, 9).is_empty()


class Failing:
    """An index that is broken."""

    def search(self, *_: object) -> list[object]:
        raise sqlite3.OperationalError("disk I/O error")


def batch_of(**change: object) -> Batch:
    memory = Memory.open(system())
    memory.ingest(transcript())
    (batch,) = memory.batches(queries(), memory.system.ranking, None)
    return replace(batch, incidents=Counter(), **change)


@pytest.mark.parametrize("branch", ["dense", "lexical"])
def test_where_one_branch_fails_the_other_answers_alone(branch: str, caplog: pytest.LogCaptureFixture) -> None:
    batch = batch_of(**{"vector_index" if branch == "dense" else "text_index": Failing()})
    found = Hybrid().candidates(batch)
    assert len(found) > 0
    assert found["cosine" if branch == "dense" else "bm25"].is_null().all()
    assert batch.incidents == {f"{branch} branch failed": len(queries())}
    assert f"the {branch} branch failed, the other one answers alone: " in caplog.text
    assert caplog.text.rstrip().endswith("disk I/O error")


def test_substrings_answer_for_a_text_index_that_fails_and_without_them_it_is_one_line() -> None:
    for source in (Lexical, Tagged, Hybrid):
        batch = batch_of(text_index=Failing())
        found = source(containment=True).candidates(batch).filter(query_id="q0")  # kitchen
        assert found["contained"].is_not_null().sum() == 2
        assert batch.incidents == {"text index failed": len(queries())}
    for source in (Lexical, Tagged):
        with pytest.raises(LcmError, match=r"^the text index failed: disk I/O error$"):
            source().candidates(batch)
    with pytest.raises(LcmError, match="both branches failed: dense: disk I/O error; lexical: the text index failed: "):
        Hybrid().candidates(replace(batch, vector_index=Failing()))
