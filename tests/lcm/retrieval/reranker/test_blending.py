import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.reranker import Blend, Cosine, RerankItem, with_replies
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.reranker.conftest import TWO_QUERIES, batch, frame, scores

TWO_ROWS = frame(("q0", "kettle", 0.8, None), ("q0", "goats", 0.5, None))
ANY = st.floats(allow_nan=True, allow_infinity=True) | st.none()


def blended(*replied: RerankItem, rows: pl.DataFrame) -> pl.DataFrame:
    return with_replies(rows, {"q0": replied}, Blend())


def test_a_floor_keeps_a_share_of_the_score() -> None:
    for lexical, returned, unreturned in ((0.75, 0.95, 1.0), (0.6, 0.9, 0.95), (None, 0.5, 0.8), (math.nan, 0.5, 0.8)):
        rows = frame(("q0", "kettle", 0.8, lexical))
        assert scores(blended(RerankItem(0, -5.0), rows=rows)) == pytest.approx({"kettle": returned * 0.8})
        assert scores(blended(rows=rows)) == pytest.approx({"kettle": unreturned * 0.8})
    blend = Blend(unreturned_weight=0.7, weak_floor_unreturned=0.2)
    assert scores(with_replies(frame(("q0", "tea", 0.5, 0.1)), {"q0": []}, blend)) == pytest.approx({"tea": 0.35})


def test_an_index_counts_where_its_score_is_highest_and_not_at_all_where_it_names_no_row() -> None:
    after = blended(RerankItem(1, 0.1), RerankItem(0, 0.2), RerankItem(1, 0.9), rows=TWO_ROWS)
    assert after["document_id"].to_list() == ["goats", "kettle"]
    assert after["reranker_score"].to_list() == [0.9, 0.2]
    after = blended(*(RerankItem(i, 0.9) for i in (2, -1, 0.5, 1e300)), rows=TWO_ROWS)
    assert after["reranker_score"].to_list() == [None, None]
    assert scores(after) == pytest.approx({"kettle": 0.64, "goats": 0.4})


def test_equal_scores_stand_in_the_order_of_the_reply_and_unreturned_ones_last() -> None:
    rows = frame(*((("q0", name, 0.5, None)) for name in ("kettle", "goats", "tea")))
    # Returned: 0.6 * 1/3 + 0.4 * 0.5 = 0.4; not returned: 0.8 * 0.5 = 0.4.
    after = with_replies(rows, {"q0": [RerankItem(2, 1 / 3), RerankItem(1, 1 / 3)]}, Blend())
    assert after["score"].to_list() == pytest.approx([0.4] * 3)
    assert after["score"].n_unique() == 1
    assert after["document_id"].to_list() == ["tea", "goats", "kettle"]


@given(score=ANY, lexical=ANY, items=st.lists(st.tuples(ANY.filter(lambda x: x is not None and math.isfinite(x)), ANY)))
def test_whatever_comes_in_a_score_between_0_and_1_comes_out(
    score: float | None, lexical: float | None, items: list[tuple[float, float | None]]
) -> None:
    replied = [RerankItem(index, 0.0 if s is None else s) for index, s in [*items, (0, score)]]
    after = blended(*replied, rows=frame(("q0", "tea", score, lexical)))
    assert 0 <= after["score"].item() <= 1


@given(score=st.floats(0, 1), lexical=st.none() | st.floats(0, 1), s=st.none() | st.floats(0, 1))
def test_a_row_never_loses_more_than_its_floor_says(score: float, lexical: float | None, s: float | None) -> None:
    after = scores(blended(*([] if s is None else [RerankItem(0, s)]), rows=frame(("q0", "tea", score, lexical))))
    assert after["tea"] >= 0.5 * score
    assert after["tea"] <= max(score, s or 0) + 1e-15  # .6 x + .4 x may be the next number above x


def test_a_window_keeps_the_best_of_each_query() -> None:
    assert Cosine(2).first(TWO_QUERIES, batch())["document_id"].to_list() == ["kettle", "goats", "tea", "goats"]
    assert Cosine(None).first(TWO_QUERIES, batch()).equals(TWO_QUERIES)
    assert Cosine(2).first(TWO_QUERIES.clear(), batch()).is_empty()
    unordered = frame(("q0", "kettle", 0.1, None), ("q0", "goats", 0.5, None))
    assert Cosine(1).first(unordered, batch())["document_id"].to_list() == ["goats"]


def test_a_bad_number_is_refused() -> None:
    not_below_0 = {"reranker_weight": -0.1, "score_weight": math.nan, "unreturned_weight": -1, "fair_from": math.nan}
    assert_refused(Blend, "be >= 0", **not_below_0)
    assert_refused(Blend, "be in [0, 1]", weak_floor=1.5, strong_floor_unreturned=math.nan)
    with pytest.raises(ValueError, match=r"^reranker_weight and score_weight must not all be 0: raise one$"):
        Blend(reranker_weight=0, score_weight=0)
