"""The recency boost; the vectors of the original are in tests/golden."""

import math

import pytest

from lcm.clock import EPOCH
from lcm.retrieval.ranking.stages.scores import RecencyBoost
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import days_ago, rows, scored


def test_the_bonus_shrinks_with_age_and_an_unknown_time_is_now() -> None:
    found = scored(RecencyBoost(), created_at=[days_ago(0), days_ago(14), days_ago(28), None, EPOCH])
    assert found == pytest.approx([0.6, 0.5 + 0.1 / math.e, 0.5 + 0.1 / math.e**2, 0.6, 0.6])
    assert scored(RecencyBoost(weight=-0.2), created_at=[days_ago(14)]) == [pytest.approx(0.5 - 0.2 / math.e)]


def test_the_future_gets_more_than_the_bonus_unless_clamped() -> None:
    tomorrow = {"created_at": [days_ago(-7)]}
    assert scored(RecencyBoost(), **tomorrow) == [pytest.approx(0.5 + 0.1 * math.exp(0.5))]
    assert scored(RecencyBoost(clamp_future=True), **tomorrow) == [pytest.approx(0.6)]
    assert scored(RecencyBoost(), created_at=[days_ago(-99999)]) == [0.5]  # the bonus is infinite


def test_the_newest_come_first_among_equals_and_zero_switches_the_boost_off() -> None:
    frame, around = rows(created_at=[days_ago(9), days_ago(1)]), documents_batch([])
    assert RecencyBoost()(frame, around)["document_id"].to_list() == ["d1", "d0"]
    for off in (RecencyBoost(half_life_days=0), RecencyBoost(weight=0)):
        assert off(frame, around).equals(frame)


def test_a_bad_number_is_refused() -> None:
    assert_refused(RecencyBoost, "be >= 0", half_life_days=[-3, math.nan, math.inf])
    assert_refused(RecencyBoost, "be a finite number", weight=[math.nan, math.inf])
