"""The first rows of each query are those that stand first when all are sorted."""

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from lcm.retrieval.ranking.ordering import best_first, first_places, query_numbers

SCORES = st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), max_size=12)


@given(queries=st.lists(SCORES, max_size=5), n=st.integers(1, 6))
@example(queries=[[0.5]] * 30 + [[0.25, 0.5, 0.0, 1.0] * 50], n=7)
def test_first_places_are_those_of_the_order_of_all_rows(queries: list[list[float]], n: int) -> None:
    rows = [(f"q{number}", score) for number, scores in enumerate(queries) for score in scores]
    frame = pl.DataFrame(rows, {"query_id": pl.String, "score": pl.Float64}, orient="row").with_row_index("place")
    first = best_first(frame).filter(pl.int_range(pl.len()).over("query_id") < n)
    assert first_places(frame["score"].to_numpy(), query_numbers(frame), n).tolist() == first["place"].to_list()
