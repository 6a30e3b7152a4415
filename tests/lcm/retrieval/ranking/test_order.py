"""The order that scoring leaves behind, and the edges of the formulas that make it."""

import math
from itertools import permutations

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lcm.retrieval.frames import best_by, best_first, places, query_numbers, with_rank
from lcm.retrieval.ranking.stages.scores import Neighbours, ZScore
from tests.golden.components import documents_batch

BATCH = documents_batch([])
MANY = 1000


def scored(query_ids: list[str], scores: list[float | None]) -> pl.DataFrame:
    return pl.DataFrame({"query_id": query_ids, "document_id": range(len(scores)), "score": scores})


def talk(**columns: list[object]) -> pl.DataFrame:
    """Rows for `Neighbours`: one query, conversation and session where not said otherwise; no words matched."""
    n = len(columns["seq"])
    same = {"query_id": ["q"] * n, "document_id": list(range(n)), "conversation_id": ["c"] * n, "session_id": ["s"] * n}
    return pl.DataFrame(same | columns).with_columns(lexical_score=pl.lit(None, pl.Float64))


def lent(frame: pl.DataFrame) -> list[float]:
    return Neighbours(dense_weight=0.5)(frame, BATCH)["dense_score"].to_list()


def test_of_documents_of_one_message_the_same_have_a_neighbour_in_whatever_order_they_come() -> None:
    rows = talk(seq=[1, 1, 2, 2, 3], dense_score=[1.0, 2.0, 4.0, 8.0, 16.0], document_id=["a", "b", "c", "d", "e"])
    for order in permutations(range(5)):
        mixed = rows[list(order)]
        assert dict(zip(mixed["document_id"], lent(mixed), strict=True)) == {"a": 1, "b": 4, "c": 5, "d": 16, "e": 20}


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    score=st.sampled_from([st.sampled_from([0.0, -0.0, 0.5, math.inf, -math.inf]), st.sampled_from([0.5, 1.0, None])]),
    has_deferred=st.booleans(),
    data=st.data(),
)
def test_queries_are_sorted_side_by_side_as_one_after_the_other(
    sizes: list[int], score: st.SearchStrategy[float | None], has_deferred: bool, data: st.DataObject
) -> None:
    number = sum(sizes)
    rows = scored(
        [f"q{i}" for i, size in enumerate(sizes) for _ in range(size)],
        data.draw(st.lists(score, min_size=number, max_size=number)),
    )
    rows = rows.with_columns(pl.col("score").cast(pl.Float64))
    if has_deferred:
        deferred = data.draw(st.lists(st.booleans(), min_size=number, max_size=number))
        rows = rows.with_columns(deferred=pl.Series(deferred))
    by_rule = []
    for _, query in rows.group_by("query_id", maintain_order=True):
        by_rule += sorted(
            query.iter_rows(named=True),
            key=lambda row: (row.get("deferred", False), row["score"] is None, -(row["score"] or 0.0)),
        )
    assert best_first(rows)["document_id"].to_list() == [row["document_id"] for row in by_rule]


def test_a_number_that_is_none_comes_first_in_every_query() -> None:
    rows = scored(["q", "q", "r", "r"], [1.0, math.nan, math.nan, 2.0])
    assert best_first(rows)["document_id"].to_list() == [1, 0, 2, 3]


def test_places_count_the_rows_of_each_query() -> None:
    rows = scored(["q", "q", "q", "r", "s", "s"], [0.1] * 6)
    assert places(rows).tolist() == [0, 1, 2, 0, 0, 1]
    assert with_rank(rows)["rank"].to_list() == [1, 2, 3, 1, 1, 2]
    assert places(rows.clear()).tolist() == []


@pytest.mark.parametrize("score", [0.5, None])
def test_many_ties_keep_their_order(score: float | None) -> None:
    rows = scored(["z"] * MANY + ["a"] * MANY, [score] * (2 * MANY - 1) + [0.9])
    assert best_first(rows)["document_id"].to_list() == [*range(MANY), 2 * MANY - 1, *range(MANY, 2 * MANY - 1)]


@pytest.mark.parametrize("cosines", [[-0.5, -0.1], [0.3, 0.7]], ids=["all below 0", "all above 0"])
def test_a_missing_cosine_stands_with_the_lowest_of_its_own_query(cosines: list[float]) -> None:
    def standard(column: list[float | None]) -> list[float]:
        other = [0.0, -0.9, 0.9]  # another query's candidates, with a lower cosine
        frame = pl.DataFrame({"query_id": ["q"] * 3 + ["r"] * 3, "cosine": column + other, "bm25": [1.0] * 6})
        return ZScore()(frame, BATCH)["dense_score"].to_list()

    found = standard([*cosines, None])
    assert found == standard([*cosines, min(cosines)])
    assert found[2] == found[0] < found[1]


def test_standard_scores_of_a_query_do_not_depend_on_huge_ones_of_another() -> None:
    together = pl.DataFrame(
        {"query_id": ["huge", "huge", "q", "q"], "cosine": [1e15, 3e15, 0.1, 0.3], "bm25": [1.0] * 4}
    )
    scores = ZScore()(together, BATCH)["dense_score"].to_list()
    assert scores == pytest.approx([-1.0, 1.0, -1.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("rows", [3, 7, 100])
def test_standard_scores_of_equal_rows_are_zero_whatever_their_mean_rounds_to(rows: int) -> None:
    equal = pl.DataFrame({"query_id": ["q"] * rows, "cosine": [0.1] * rows, "bm25": [0.3] * rows})
    assert ZScore()(equal, BATCH)["dense_score"].to_list() == [0.0] * rows


def test_two_conversations_never_lend_to_each_other_whatever_their_sessions_are_called() -> None:
    assert lent(talk(conversation_id=["c", "d"], seq=[1, 2], dense_score=[1.0, 10.0])) == [1.0, 10.0]
    crossed = talk(conversation_id=["c", "d", "c", "d"], seq=[1, 1, 2, 2], dense_score=[1.0, 10.0, 100.0, 1000.0])
    assert lent(crossed) == [51.0, 510.0, 100.5, 1005.0]


FEW_SCORES = st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), max_size=12)


@given(queries=st.lists(FEW_SCORES, max_size=5), n=st.integers(1, 6))
@example(queries=[[0.5]] * 30 + [[0.25, 0.5, 0.0, 1.0] * 50], n=7)
def test_first_places_are_those_of_the_order_of_all_rows(queries: list[list[float]], n: int) -> None:
    rows = [(f"q{number}", score) for number, scores in enumerate(queries) for score in scores]
    frame = pl.DataFrame(rows, {"query_id": pl.String, "score": pl.Float64}, orient="row").with_row_index("place")
    first = best_first(frame).filter(pl.int_range(pl.len()).over("query_id") < n)
    assert best_by([frame["score"].to_numpy()], query_numbers(frame), n).tolist() == first["place"].to_list()
