"""The weighted sum; the vectors of the original are in tests/golden."""

import math

import polars as pl
import pytest

from lcm.retrieval.fusion import WeightedSum
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused


def fused(rows: list[tuple[float | None, float | None]], **settings: float) -> list[float]:
    frame = pl.DataFrame(
        {
            "query_id": ["q"] * len(rows),
            "document_id": [str(i) for i in range(len(rows))],
            "dense_score": [dense for dense, _ in rows],
            "lexical_score": [lexical for _, lexical in rows],
            "dense_rank": [None if dense is None else 1 for dense, _ in rows],
        },
        schema_overrides={"dense_score": pl.Float64, "lexical_score": pl.Float64, "dense_rank": pl.Int64},
    )
    scored = WeightedSum(**settings)(frame, documents_batch([]))
    return scored.sort(pl.col("document_id").cast(pl.Int64))["score"].to_list()


def test_both_branches_are_weighted_and_a_strong_lexical_score_is_a_floor() -> None:
    assert fused([(0.6, 0.5), (0.1, 0.9), (None, 0.8)]) == pytest.approx([0.7 * 0.6 + 0.3 * 0.5, 0.92 * 0.9, 0.8])
    assert fused([(0.1, 0.9)], floor_ratio=0) == [pytest.approx(0.7 * 0.1 + 0.3 * 0.9)]
    assert fused([(math.nan, None), (math.inf, None)]) == [0.1, 0.1]


def test_scores_are_clamped_only_where_asked() -> None:
    assert fused([(2.0, None), (-1.0, 0.1)]) == [1.0, 0.0]
    assert fused([(2.0, None)], clamp=False) == [pytest.approx(1.4)]


def test_a_weight_below_0_is_refused() -> None:
    bad = [-0.1, math.nan]
    assert_refused(WeightedSum, "be >= 0", dense_weight=bad, lexical_weight=bad, floor_ratio=bad)
