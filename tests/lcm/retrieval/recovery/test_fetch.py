"""What comes behind an answer that has failed."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from lcm.errors import ModelError
from lcm.memory.memory import Memory
from lcm.records.document import Document
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA, Ranking
from lcm.retrieval.ranking.stages.scores import RawScore
from lcm.retrieval.ranking.stages.selection import Limit
from lcm.retrieval.recovery.fetch import FailureRule, Fetch, NoRecovery
from lcm.retrieval.source.indexes import Dense, Lexical
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.writing.extraction.said import Steps
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.recovery.turns import overlay
from tests.support.workspaces import LINES, minute, queries, system, transcript

HERE, ELSEWHERE = "talk:session 0", "another session"


def asked(text: str, session_id: str | None = HERE, query_id: str = "q") -> Query:
    return Query(query_id, text, minute(60), session_id=session_id)


def ranking(fetch: Fetch | None = None, n: int = 2, source: Any = None) -> Ranking:
    fetch = fetch or Fetch(overlay(failure=FailureRule(min_top_k=1)), session_k=2, user_k=3)
    score = RawScore("bm25" if isinstance(source, Lexical) else "cosine")
    return Ranking(source or Dense(), {"score": score, "limit": Limit(n), "recovery": fetch})


def memory(
    lines: Sequence[str] = LINES, summaries: Sequence[str] = ("A summary of the kitchen",), is_durable: bool = True
) -> Memory:
    """Turns, by two in turn, a session every four; and summaries of the first session without confidence."""
    said = transcript(lines)
    store = Store(":memory:")
    store.ingest(said, Utf16Units())
    folded = [
        Document(f"summary {i}", text, ("talk:0", "talk:1"), "talk", HERE, minute(9), kind="summary", confidence=0.0)
        for i, text in enumerate(summaries)
    ]
    for i, one in enumerate(said.messages):
        turn = Document(f"turn {i}", one.content, (one.message_id,), "talk", one.session_id, minute(i))
        folded.append(replace(turn, is_durable=is_durable))
    store.add_documents(folded)
    store.set_extracted("talk", len(said.messages))
    return Memory(system(ranking=ranking()), store)


def found(ranked: pl.DataFrame, *, is_recovered: bool, query_id: str = "q") -> list[str]:
    return ranked.filter(query_id=query_id, is_recovered=is_recovered)["document_id"].to_list()


def test_a_vague_answer_gets_turns_of_its_own_session_behind_it() -> None:
    with memory() as talk:
        ranked = talk.rank([asked("summary of the kitchen")])
        by_words = talk.rank([asked("a summary of the blue kitchen")], ranking(source=Lexical()))
    assert by_words["is_recovered"].any()  # of a source that embeds no query too
    assert found(ranked, is_recovered=False)[0] == "summary 0"
    behind = found(ranked, is_recovered=True)
    # 2 and as many more as the answer holds, of those that it does not hold, of turns 0 to 3
    assert set(behind) == {f"turn {i}" for i in range(4)} - set(found(ranked, is_recovered=False))
    assert ranked["document_id"].to_list() == found(ranked, is_recovered=False) + behind
    assert ranked.schema == pl.Schema(RANKED_SCHEMA)
    rows = ranked.filter(pl.col("is_recovered"))
    assert rows["score"].to_list() == rows["cosine"].to_list() == sorted(rows["cosine"], reverse=True)
    assert set(rows["scope_class"]) == {"session"}


def test_a_question_from_elsewhere_gets_what_users_said() -> None:
    with memory(summaries=()) as talk:
        ranked = talk.rank([asked("goats", ELSEWHERE)])
        nobody = talk.rank([asked("goats", None)])
        seeing = talk.rank([replace(asked("goats", None), shown_message_ids=("elsewhere",))])
    behind = found(ranked, is_recovered=True)
    users = {"turn 0", "turn 2", "turn 4", "turn 6"}
    assert set(behind) == users - set(found(ranked, is_recovered=False))
    assert nobody.equals(ranked)
    assert seeing.equals(ranked), "who asks in no session is in none, whatever he sees"


def test_a_session_all_of_whose_turns_are_shown_anyway_is_no_elsewhere() -> None:
    shown = tuple(f"talk:{i}" for i in range(4))
    with memory(summaries=()) as talk:
        ranked = talk.rank([replace(asked("goats"), shown_message_ids=shown)])
    assert not {f"turn {i}" for i in range(4)} & set(ranked["document_id"])
    assert found(ranked, is_recovered=False)
    assert not found(ranked, is_recovered=True)


def test_it_gets_so_many_as_asked_for_and_as_many_more_as_it_holds() -> None:
    lines = [f"goat number {i}" for i in range(60)]
    fetch = Fetch(overlay(), user_k=3)
    with memory(lines, ()) as talk:
        ranked = talk.rank([asked("goat", ELSEWHERE)], ranking(fetch, n=5))
        nothing_held = talk.rank([replace(asked("goat", ELSEWHERE), only_category="none")], ranking(fetch, n=5))
    assert len(found(ranked, is_recovered=False)) == 5
    assert len(found(ranked, is_recovered=True)) == 3 + 5
    assert not len(nothing_held)


def test_turns_that_are_not_durable_are_found_from_elsewhere_too() -> None:
    with memory(summaries=(), is_durable=False) as talk:
        ranked = talk.rank([asked("goats", ELSEWHERE)])
    assert not found(ranked, is_recovered=False)
    assert found(ranked, is_recovered=True)[0] == "turn 2"
    assert len(ranked) == 3
    assert ranked["rank"].to_list() == [1, 2, 3]


def test_queries_are_answered_as_if_asked_alone() -> None:
    some = [
        asked("summary of the kitchen", query_id="vague"),
        asked("goats", ELSEWHERE, "elsewhere"),
        asked("The database migration failed with a timeout", query_id="fine"),
        asked("goats near the river", "talk:session 1", "there"),
        asked("a summary of the blue kitchen", query_id="vague too"),
        *queries(),
    ]
    with memory() as talk:
        together = talk.rank(some)
        alone = pl.concat([talk.rank([query]) for query in some])
    assert together.drop("score", "cosine").equals(alone.drop("score", "cosine"))
    assert np.allclose(together["cosine"].to_numpy(), alone["cosine"].to_numpy())
    assert together["query_id"].rle().struct.field("value").to_list() == [query.query_id for query in some]
    assert not together.select("query_id", "document_id").is_duplicated().any()


def test_a_row_that_was_there_stays_as_it_is_and_an_answer_that_has_not_failed_gets_nothing() -> None:
    with memory() as talk:
        before = talk.rank([asked("summary of the kitchen")], ranking(Fetch(NoRecovery())))
        after = talk.rank([asked("summary of the kitchen")])
        fine = talk.rank([asked("The database migration failed with a timeout")])
    assert after.filter(~pl.col("is_recovered")).equals(before)
    assert not before["is_recovered"].any()
    assert found(fine, is_recovered=False)[0] == "turn 3"
    assert not found(fine, is_recovered=True)


def test_queries_that_cannot_be_embedded_get_nothing_and_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    with memory() as talk:
        (batch,) = talk.batches([asked("kitchen")], talk.system.ranking, None)
        frame = talk.system.ranking.source.candidates(batch)  # type: ignore[attr-defined]
        broken = replace(batch, vectors=np.empty((1, 0), np.float32), embedding_error=ModelError("no model"))
        with caplog.at_level(logging.WARNING):
            fetched = Fetch(overlay()).expand(frame, broken)
    assert len(fetched) == len(frame)
    assert broken.incidents["recovery without vectors"] == 1
    assert "no model" in caplog.text


def test_fetching_nothing_is_refused() -> None:
    assert_refused(partial(Fetch, NoRecovery()), "be >= 1", session_k=0, user_k=0)


def test_exchanges_are_turns_of_users() -> None:
    talk = transcript(LINES)
    with Memory.open(system(ranking=ranking(n=1), extraction=Steps(exchange_characters=500))) as memory:
        memory.ingest(replace(talk, messages=tuple(replace(one, author=None) for one in talk.messages)))
        kinds = dict(memory.documents.select("document_id", "kind").iter_rows())
        ranked = memory.rank([asked("goats", ELSEWHERE)])
    assert {kinds[document_id] for document_id in found(ranked, is_recovered=True)} == {"exchange"}
