"""A pool holds what was found first, and nothing of who found it."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from eval.judging.session import pooled

NAMES = [f"d{i}" for i in range(12)]
RANKINGS = st.lists(st.permutations(NAMES), min_size=1, max_size=4)


def ranking(documents: list[str], query: str = "q") -> pl.DataFrame:
    rows = [(query, name, rank) for rank, name in enumerate(documents, start=1)]
    return pl.DataFrame(rows, schema=["query_id", "document_id", "rank"], orient="row")


@given(RANKINGS, st.integers(1, 12))
def test_it_holds_the_first_documents_of_every_ranking_once(rankings: list[list[str]], depth: int) -> None:
    pool = pooled(map(ranking, rankings), depth, ["q"])
    assert sorted(pool["document_id"]) == sorted({name for one in rankings for name in one[:depth]})


@given(RANKINGS, st.integers(1, 12), st.randoms())
def test_its_order_says_neither_who_found_a_document_nor_where(rankings: list[list[str]], depth: int, random) -> None:
    """The same documents, found by others at other ranks, stand in the same order; more of them between these."""
    pool = pooled(map(ranking, rankings), depth, ["q"])["document_id"].to_list()
    found = sorted(pool)
    random.shuffle(found)
    assert pooled([ranking(found)], len(found), ["q"])["document_id"].to_list() == pool
    grown = pooled([*map(ranking, rankings), ranking(NAMES)], 12, ["q"])["document_id"].to_list()
    assert [name for name in grown if name in set(pool)] == pool


def test_queries_stand_in_their_order_and_those_not_asked_for_are_left_out() -> None:
    rankings = [ranking(["a"], query) for query in ("q3", "q1", "q2")]
    assert pooled(rankings, 5, ["q2", "q3"]).rows() == [("q2", "a"), ("q3", "a")]
