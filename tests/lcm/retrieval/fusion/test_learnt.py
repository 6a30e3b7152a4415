import math

import polars as pl
import pytest

from lcm.retrieval.fusion import Learnt

FRAME = pl.DataFrame(
    {"query_id": ["q", "q"], "document_id": ["a", "b"], "x": [1.0, None], "y": [2.0, 5.0], "score": 0.0}
)


def test_a_score_is_the_weighted_sum_and_a_missing_value_counts_nothing() -> None:
    mixed = Learnt({"x": 3.0, "y": -0.5})(FRAME, None)  # type: ignore[arg-type]
    assert mixed.select("document_id", "score").rows() == [("a", 3 * 1 - 0.5 * 2), ("b", -0.5 * 5)]


def test_an_unknown_column_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"weights.z names no column of numbers .*; leave it out, or choose from: score, x, y"
    ):
        Learnt({"z": 1.0})(FRAME, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", [{}, {"x": math.nan}, {"x": math.inf}])
def test_weights_must_be_there_and_finite(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        Learnt(weights)
