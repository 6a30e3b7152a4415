"""Time decay and the half-life that use lengthens; the vectors of the original are in tests/golden."""

import math

import pytest

from lcm.clock import EPOCH
from lcm.retrieval.ranking.stages.scores import TimeDecay
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows, scored


def test_half_of_the_score_is_lost_with_age() -> None:
    found = scored(
        TimeDecay(),
        created_at=[NOW, days_ago(60), days_ago(9999), days_ago(20), None, EPOCH],
        temporal_type=["static"] * 3 + ["dynamic"] + ["static"] * 2,  # which decays three times as fast
    )
    half = 0.5 * (0.5 + 0.5 / math.e)
    assert found == pytest.approx([0.5, half, 0.25, half, 0.5, 0.5])


def test_the_future_is_lifted_unless_clamped() -> None:
    tomorrow = {"score": [0.5], "created_at": [days_ago(-30)]}
    assert scored(TimeDecay(), **tomorrow) == [pytest.approx(0.5 * (0.5 + 0.5 * math.exp(0.5)))]
    assert scored(TimeDecay(clamp_future=True), **tomorrow) == [0.5]


def test_the_older_steps_back_and_zero_switches_it_off() -> None:
    frame, around = rows(created_at=[days_ago(9), NOW]), documents_batch([])
    assert TimeDecay()(frame, around)["document_id"].to_list() == ["d1", "d0"]
    assert TimeDecay(half_life_days=0)(frame, around).equals(frame)


def test_a_bad_number_is_refused() -> None:
    assert_refused(TimeDecay, "be >= 0", half_life_days=[-3, math.nan], reinforcement_factor=-1)
    assert_refused(TimeDecay, "be > 0", max_half_life_multiplier=0, dynamic_divisor=math.nan, access_half_life_days=0)
    assert_refused(TimeDecay, "be in [0, 1]", floor_ratio=1.1)
