"""The formulas of the small stages, and the order of a frame."""

import math

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.retrieval.fusion import WeightedSum
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import InverseDistance, Neighbours, RawScore, Sigmoid, ZScore
from lcm.retrieval.ranking.stages.selection import Limit, MinScore
from lcm.retrieval.source.indexes import Hybrid
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.support.workspaces import queries, system, transcript

BATCH = documents_batch([])


def frame(**columns: list[object]) -> pl.DataFrame:
    n = len(next(iter(columns.values())))
    return pl.DataFrame({"query_id": ["q"] * n, "document_id": [f"d{i}" for i in range(n)], **columns})


def test_small_stages_of_known_scores() -> None:
    scored = InverseDistance()(frame(cosine=[1.0, 0.0, -1.0, None]), BATCH)["dense_score"].to_list()
    assert scored == [1.0, 0.5, pytest.approx(1 / 3), None]
    rows = frame(bm25=[5.0, 0.0, -2.0, None, None], contained=[None, None, None, None, 0.8])
    scored = Sigmoid()(rows, BATCH)["lexical_score"].to_list()
    assert scored == [pytest.approx(1 / (1 + math.exp(-1))), 0.5, 0.5, None, 0.8]
    assert MinScore(0.5)(frame(score=[0.4, 0.5, 0.6]), BATCH)["score"].to_list() == [0.5, 0.6]
    assert RawScore("cosine")(frame(cosine=[0.2, 0.7], score=[None, None]), BATCH)["score"].to_list() == [0.7, 0.2]
    rows = frame(score=[0.1, 0.9, 0.5]).vstack(frame(score=[0.3, 0.2, 0.4]).with_columns(query_id=pl.lit("r")))
    assert Limit(2)(rows, BATCH)["score"].to_list() == [0.9, 0.5, 0.4, 0.3]


def test_z_scores_have_mean_zero_and_deviation_one() -> None:
    scored = ZScore()(frame(cosine=[0.1, 0.5, 0.9], bm25=[1.0, None, 3.0]), BATCH)
    assert scored["dense_score"].to_list() == pytest.approx([-math.sqrt(1.5), 0.0, math.sqrt(1.5)])
    deviation = math.sqrt((1 + 0 + 9) / 3 - (4 / 3) ** 2)
    assert scored["lexical_score"].to_list() == pytest.approx([(x - 4 / 3) / deviation for x in (1, 0, 3)])


def test_a_stage_that_is_a_bare_dict_is_refused() -> None:
    with pytest.raises(TypeError, match=r"stages\.fusion must be a stage, got \{'k': 30\}"):
        Ranking(Hybrid(), {"fusion": {"k": 30}})  # type: ignore[dict-item]


def test_an_order_names_stages_that_exist_and_once() -> None:
    with pytest.raises(ValueError, match="order names no stage 'fuse'; choose from: limit"):
        Ranking(Hybrid(), {"limit": Limit()}, order=["fuse"])
    with pytest.raises(ValueError, match="twice"):
        Ranking(Hybrid(), {"limit": Limit()}, order=["limit", "limit"])


def test_a_bad_number_is_refused() -> None:
    assert_refused(Sigmoid, "be > 0", scale=0)
    assert_refused(Limit, "be >= 1", n=0)


def test_neighbours_that_follow_each_other_lend_within_a_session_only() -> None:
    rows = frame(
        conversation_id=["c"] * 5,
        session_id=["s", "s", "s", "t", "s"],
        seq=[3, 1, 2, 4, 9],
        dense_score=[1.0, 10.0, 100.0, 1000.0, 10_000.0],
        lexical_score=[None, 1.0, None, 5.0, None],
    )
    lent = Neighbours(dense_weight=0.5, lexical_weight=1.0)(rows, BATCH)
    assert lent["document_id"].to_list() == rows["document_id"].to_list()
    assert lent["dense_score"].to_list() == [1 + 0.5 * 100, 10 + 0.5 * 100, 100 + 0.5 * (10 + 1), 1000, 10_000]
    assert lent["lexical_score"].to_list() == [None, 1.0, None, 5.0, None]


def test_a_stage_before_what_it_needs_is_told_in_one_line() -> None:
    with Memory.open(system(ranking=Ranking(Hybrid(), {"fusion": WeightedSum()}))) as memory:
        memory.ingest(transcript())
        with pytest.raises(ValueError, match=r"stage 'fusion' needs the column '(dense|lexical)_score', which no"):
            memory.rank(queries())
