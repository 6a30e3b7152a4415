"""Means over groups of queries."""

from datetime import UTC, datetime

import polars as pl

from eval.measures.means import Entry, Means
from eval.table import usual_n
from lcm.records.query import Query
from tests.eval.tiny import tiny


def test_queries_without_a_category_count_among_all_beside_others_that_have_one() -> None:
    """`all` is the category of a query that names none: it must not stand in for the group of all."""
    asked_at = datetime(2026, 1, 1, tzinfo=UTC)
    queries = tuple(Query(f"q{n}", "?", asked_at, category=name) for n, name in enumerate(("all", "fact", "fact")))
    values = pl.DataFrame(
        {"arm": ["system"] * 3, "query_id": ["q0", "q1", "q2"], "measure": ["recall@5"] * 3, "value": [1.0, 0.0, 0.5]}
    )
    means = Means(resamples=10).of_queries(values, tiny([], queries))
    assert means.select("group", "value", "n").rows() == [("all", 0.5, 3), ("fact", 0.25, 2)]


def entries(*counts: int | None) -> list[Entry | None]:
    return [None if n is None else {"value": 0.5, "n": n, "low": None, "high": None} for n in counts]


def test_one_measure_of_more_queries_does_not_make_all_others_say_theirs() -> None:
    assert usual_n(entries(8, 8, 9)) == 8
    assert usual_n(entries(None, 9, 8, 8)) == 8
    assert usual_n(entries(9, 8)) == 9
    assert usual_n(entries(None)) == usual_n([]) == 0
