import logging
import math

import numpy as np
import polars as pl
import pytest

from lcm.errors import ModelError
from lcm.retrieval.reranker.cosine import Cosine
from tests.lcm.retrieval.reranker.conftest import QUERIES, TWO_QUERIES, batch, frame, scores


def test_seven_tenths_of_the_score_and_three_of_the_cosine() -> None:
    after = Cosine()(TWO_QUERIES, batch())
    # cosines to q0: kettle 1, goats 0, tea 0.6
    expected = {"kettle": 0.7 * 0.8 + 0.3, "tea": 0.7 * 0.4 + 0.3 * 0.6, "goats": 0.7 * 0.5}
    assert scores(after) == pytest.approx(expected)
    assert list(scores(after)) == list(expected)
    assert list(scores(after, "q1")) == ["tea", "goats", "lamp"]
    assert after.filter(pl.col("query_id") == "q0")["reranker_score"].to_list() == pytest.approx([1.0, 0.6, 0.0])


def test_a_row_that_points_away_loses_but_not_below_0() -> None:
    rows = frame(("q0", "lamp", 0.8, None), ("q0", "goats", 0.1, None))
    assert scores(Cosine()(rows, batch())) == pytest.approx({"lamp": 0.7 * 0.8 - 0.3, "goats": 0.07})
    assert scores(Cosine()(frame(("q0", "lamp", 0.1, None)), batch())) == {"lamp": 0.0}


@pytest.mark.parametrize(("score", "expected"), [(math.nan, 0.0), (math.inf, 0.0), (None, 0.0)])
def test_a_score_that_is_no_number_becomes_0(score: float | None, expected: float) -> None:
    assert scores(Cosine()(frame(("q0", "tea", score, None)), batch())) == {"tea": expected}


def test_a_cosine_that_is_no_number_leaves_the_score() -> None:
    broken = batch(vectors={"tea": (math.nan, 0.0)})
    assert scores(Cosine()(frame(("q0", "tea", 0.4, None)), broken)) == {"tea": 0.4}


def test_what_lies_beyond_the_window_is_dropped_and_its_vector_not_asked_for() -> None:
    calls: list[list[str]] = []
    after = Cosine(window=1)(TWO_QUERIES, batch(calls=calls))
    assert after["document_id"].to_list() == ["kettle", "tea"]
    assert calls == [["kettle", "tea"]]


def test_each_document_is_asked_for_once() -> None:
    calls: list[list[str]] = []
    assert len(Cosine(window=None)(TWO_QUERIES, batch(calls=calls))) == 6
    assert calls == [["kettle", "goats", "tea", "lamp"]]


def test_queries_without_vectors_leave_every_score_and_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    without = batch(query_vectors={})
    after = Cosine()(TWO_QUERIES, without)
    assert after.drop("reranker_score").equals(TWO_QUERIES)
    assert after["reranker_score"].to_list() == [None] * 6
    assert without.incidents == {"rerank_without_cosine": 2}
    assert "reranking by cosine is left out" in caplog.text


def test_queries_that_could_not_be_embedded_ask_for_no_document(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[list[str]] = []
    broken = batch(embedding_error=ModelError("gone"), calls=calls)
    assert Cosine()(TWO_QUERIES, broken).drop("reranker_score").equals(TWO_QUERIES)
    assert calls == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_row_does_not_depend_on_the_queries_beside_it() -> None:
    rng = np.random.default_rng(3)
    names = [f"d{i}" for i in range(50)]
    wide = {name: rng.standard_normal(384).astype(np.float32).tolist() for name in [*names, *QUERIES]}
    many = batch(query_vectors=wide, vectors=wide, texts=dict.fromkeys(names, ""))
    rows = frame(*((query, names[i], 1 - i / 60, None) for query in QUERIES for i in rng.permutation(50)))
    alone = [Cosine()(part, many) for part in rows.partition_by("query_id", maintain_order=True)]
    assert Cosine()(rows, many).equals(pl.concat(alone))


def test_an_empty_frame_stays_one_and_asks_for_nothing() -> None:
    calls: list[list[str]] = []
    after = Cosine()(TWO_QUERIES.clear(), batch(calls=calls))
    assert after.is_empty()
    assert after.schema == TWO_QUERIES.schema | {"reranker_score": pl.Float64()}
    assert calls == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window must be >= 1 or null, got 0"),
        ({"score_weight": -1}, "score_weight must be >= 0, got -1"),
        ({"cosine_weight": math.nan}, "cosine_weight must be >= 0, got nan"),
        ({"score_weight": 0, "cosine_weight": 0}, "score_weight and cosine_weight must not all be 0: raise one"),
    ],
)
def test_a_bad_number_is_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Cosine(**settings)
