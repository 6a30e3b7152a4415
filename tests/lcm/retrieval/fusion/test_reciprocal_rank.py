"""Reciprocal rank fusion."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.fusion import ReciprocalRank
from tests.golden.components import documents_batch

ROWS = pl.DataFrame(
    {
        "query_id": ["q"] * 3,
        "document_id": ["both", "dense", "lexical"],
        "dense_rank": [3, 1, None],
        "lexical_rank": [1, None, 2],
    }
)


def test_weights_that_are_all_0_are_refused_where_no_further_branch_weighs() -> None:
    fusion = ReciprocalRank(dense_weight=0.0, lexical_weight=0.0)
    with pytest.raises(ValueError, match=r"every branch \(dense, lexical\) weighs 0: raise dense_weight"):
        fusion(ROWS, documents_batch([]))
    further = fusion(ROWS.with_columns(session_rank=pl.Series([2, 1, None])), documents_batch([]))
    assert further["document_id"].to_list() == ["dense", "both", "lexical"]
    assert further["score"].to_list() == pytest.approx([1 / (60 + 1), 1 / (60 + 2), 0.0])


RANKS = st.lists(st.lists(st.none() | st.integers(1, 50), min_size=4, max_size=4), min_size=1, max_size=12)
WEIGHTS = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)


@given(RANKS, WEIGHTS, st.integers(0, 100))
def test_the_score_is_what_fractions_give_and_the_best_comes_first(
    ranks: list[list[int | None]], weights: list[int], k: int
) -> None:
    names = ("dense", "lexical", "session", "speaker")
    columns = {f"{name}_rank": pl.Series([row[i] for row in ranks], dtype=pl.Int64) for i, name in enumerate(names)}
    ids = [f"d{i}" for i in range(len(ranks))]
    frame = pl.DataFrame({"query_id": ["q"] * len(ranks), "document_id": ids, **columns})
    fusion = ReciprocalRank(k, weights[0], weights[1], {"session": weights[2], "speaker": weights[3]})
    fused = fusion(frame, documents_batch(ids))
    exact = [sum(Fraction(w, k + rank) for w, rank in zip(weights, row, strict=True) if rank) for row in ranks]
    assert dict(fused.select("document_id", "score").iter_rows()) == pytest.approx(
        {name: float(score) for name, score in zip(ids, exact, strict=True)}
    )
    assert fused["score"].is_sorted(descending=True)


def test_a_further_branch_that_is_not_named_weighs_one() -> None:
    frame = pl.DataFrame({"query_id": ["q"], "dense_rank": [1], "lexical_rank": [None], "session_rank": [2]})
    assert ReciprocalRank()(frame, documents_batch([]))["score"].item() == pytest.approx(1 / (60 + 1) + 1 / (60 + 2))
