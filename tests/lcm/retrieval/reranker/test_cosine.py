import logging
import math

import pytest

from lcm.errors import ModelError
from lcm.retrieval.reranker import Cosine
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.reranker.conftest import TWO_QUERIES, batch, frame, scores


def test_the_cosine_is_told_beside_the_score() -> None:
    after = Cosine()(TWO_QUERIES, batch())
    assert dict(zip(after["document_id"], after["reranker_score"], strict=True))["lamp"] == 0.0
    assert after.filter(query_id="q0")["reranker_score"].to_list() == pytest.approx([1.0, 0.6, 0.0])


def test_a_score_that_is_no_number_becomes_0_and_a_cosine_that_is_none_leaves_the_score() -> None:
    for score in (math.nan, math.inf, None):
        assert scores(Cosine()(frame(("q0", "tea", score, None)), batch())) == {"tea": 0.0}
    broken = batch(vectors={"tea": (math.nan, 0.0)})
    assert scores(Cosine()(frame(("q0", "tea", 0.4, None)), broken)) == {"tea": 0.4}


def test_what_lies_beyond_the_window_is_dropped_and_each_document_left_is_asked_for_once() -> None:
    calls: list[list[str]] = []
    after = Cosine(window=1)(TWO_QUERIES, batch(calls=calls))
    assert after["document_id"].to_list() == ["kettle", "tea"]
    assert len(Cosine(window=None)(TWO_QUERIES, batch(calls=calls))) == 6
    assert calls == [["kettle", "tea"], ["kettle", "goats", "tea", "lamp"]]


@pytest.mark.parametrize(("change", "asks"), [({"query_vectors": {}}, 1), ({"embedding_error": ModelError("gone")}, 0)])
def test_queries_without_vectors_leave_every_score_and_are_counted(change, asks, caplog):
    calls: list[list[str]] = []
    without = batch(calls=calls, **change)
    after = Cosine()(TWO_QUERIES, without)
    assert after.drop("reranker_score").equals(TWO_QUERIES)
    assert after["reranker_score"].to_list() == [None] * 6
    assert without.incidents == {"rerank_without_cosine": 2}
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "reranking by cosine is left out" in caplog.text
    assert len(calls) == asks


def test_a_bad_number_is_refused() -> None:
    assert_refused(Cosine, "be >= 1 or null", window=0)
    assert_refused(Cosine, "be >= 0", score_weight=-1, cosine_weight=math.nan)
    with pytest.raises(ValueError, match=r"^score_weight and cosine_weight must not all be 0: raise one$"):
        Cosine(score_weight=0, cosine_weight=0)
