"""Reciprocal rank fusion."""

import polars as pl
import pytest

from lcm.retrieval.fusion.reciprocal_rank import ReciprocalRank
from tests.golden.components import documents_batch

ROWS = pl.DataFrame(
    {
        "query_id": ["q"] * 3,
        "document_id": ["both", "dense", "lexical"],
        "dense_rank": [3, 1, None],
        "lexical_rank": [1, None, 2],
    }
)


def scores(**settings: float) -> dict[str, float]:
    frame = ReciprocalRank(**settings)(ROWS, documents_batch([]))
    return dict(zip(frame["document_id"], frame["score"], strict=True))


def test_ranks_of_both_branches_add_up() -> None:
    assert scores()["both"] == pytest.approx(1 / (60 + 3) + 1 / (60 + 1))
    assert scores()["dense"] == pytest.approx(1 / (60 + 1))
    assert scores()["lexical"] == pytest.approx(1 / (60 + 2))


def test_best_comes_first() -> None:
    assert list(scores()) == ["both", "dense", "lexical"]


def test_swapping_branches_with_their_weights_changes_nothing() -> None:
    swapped = ROWS.rename({"dense_rank": "lexical_rank", "lexical_rank": "dense_rank"})
    ours = ReciprocalRank(dense_weight=2.0)(ROWS, documents_batch([]))
    theirs = ReciprocalRank(lexical_weight=2.0)(swapped, documents_batch([]))
    assert dict(ours.select("document_id", "score").iter_rows()) == pytest.approx(
        dict(theirs.select("document_id", "score").iter_rows())
    )


def test_weights_that_are_all_0_are_refused_where_no_further_branch_weighs() -> None:
    fusion = ReciprocalRank(dense_weight=0.0, lexical_weight=0.0)
    with pytest.raises(ValueError, match=r"every branch \(dense, lexical\) weighs 0: raise dense_weight"):
        fusion(ROWS, documents_batch([]))
    further = fusion(ROWS.with_columns(session_rank=pl.Series([2, 1, None])), documents_batch([]))
    assert further["document_id"].to_list() == ["dense", "both", "lexical"]
    assert further["score"].to_list() == pytest.approx([1 / (60 + 1), 1 / (60 + 2), 0.0])
