"""Scores kept in [0, 1]."""

import math

import polars as pl

from lcm.retrieval.ranking.stages.clamp import clamp01, clamp01_with_floor, rescored
from tests.lcm.retrieval.decay.frames import rows


def test_what_is_no_number_takes_the_fallback_as_it_is() -> None:
    values = pl.DataFrame({"x": [0.4, -1.0, 2.0, math.nan, math.inf, None]})
    assert values.select(clamp01(pl.col("x"), pl.lit(1.5)))["x"].to_list() == [0.4, 0.0, 1.0, 1.5, 1.5, 1.5]
    assert values.select(clamp01(pl.col("x"), pl.lit(math.nan)))["x"].to_list() == [0.4, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_nothing_is_below_the_floor() -> None:
    pairs = pl.DataFrame({"value": [0.1, 0.5, 0.5, 0.5], "floor": [0.3, 0.3, 2.0, -1.0]})
    found = pairs.select(clamp01_with_floor(pl.col("value"), pl.col("floor"))).to_series()
    assert found.to_list() == [0.3, 0.5, 1.0, 0.5]


def test_new_scores_stand_best_first_and_leave_no_column_behind() -> None:
    frame = rows(score=[0.9, 0.2, math.nan, math.inf], importance=[0.1, math.nan, 0.5, math.inf])
    after = rescored(frame, pl.col("importance"), fallback_ratio=0.5)
    assert after.columns == frame.columns
    # 0.5 of 0.2 in place of NaN, 0 in place of 0.5 of infinity; ties keep their order.
    assert after.select("document_id", "score").rows() == [("d2", 0.5), ("d0", 0.1), ("d1", 0.1), ("d3", 0.0)]
