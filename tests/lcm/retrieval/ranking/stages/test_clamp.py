"""Scores kept in [0, 1]."""

import math

from lcm.retrieval.ranking.stages.scores import rescored
from tests.lcm.retrieval.decay.frames import rows


def test_new_scores_stand_best_first_and_leave_no_column_behind() -> None:
    frame = rows(score=[0.9, 0.2, math.nan, math.inf], importance=[0.1, math.nan, 0.5, math.inf])
    after = rescored(frame, lambda columns: columns.numbers("importance"), fallback_ratio=0.5)
    assert after.columns == frame.columns
    # 0.5 of 0.2 in place of NaN, 0 in place of 0.5 of infinity; ties keep their order.
    assert after.select("document_id", "score").rows() == [("d2", 0.5), ("d0", 0.1), ("d1", 0.1), ("d3", 0.0)]
