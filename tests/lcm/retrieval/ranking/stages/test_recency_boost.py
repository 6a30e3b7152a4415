"""The recency boost; the vectors of the original are in tests/golden."""

import math

import pytest

from lcm.clock import EPOCH
from lcm.retrieval.ranking.stages.recency_boost import RecencyBoost
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import days_ago, rows

BATCH = documents_batch([])


def boosted(stage: RecencyBoost, **columns: list[object]) -> list[float]:
    return stage(rows(**columns), BATCH).sort("document_id")["score"].to_list()


def test_the_bonus_shrinks_with_age() -> None:
    found = boosted(RecencyBoost(), score=[0.5] * 3, created_at=[days_ago(0), days_ago(14), days_ago(28)])
    assert found == pytest.approx([0.6, 0.5 + 0.1 / math.e, 0.5 + 0.1 / math.e**2])


def test_the_newest_come_first_among_equals() -> None:
    after = RecencyBoost()(rows(created_at=[days_ago(9), days_ago(1)]), BATCH)
    assert after["document_id"].to_list() == ["d1", "d0"]


def test_no_score_leaves_the_unit_interval() -> None:
    assert boosted(RecencyBoost(), score=[0.97, -0.5, math.nan, None]) == [1.0, 0.0, 0.0, 0.0]


def test_an_unknown_time_is_now() -> None:
    assert boosted(RecencyBoost(), created_at=[None, EPOCH]) == pytest.approx([0.6, 0.6])


def test_the_future_gets_more_than_the_bonus_unless_clamped() -> None:
    tomorrow = {"created_at": [days_ago(-7)]}
    assert boosted(RecencyBoost(), **tomorrow) == [pytest.approx(0.5 + 0.1 * math.exp(0.5))]
    assert boosted(RecencyBoost(clamp_future=True), **tomorrow) == [pytest.approx(0.6)]
    assert boosted(RecencyBoost(), created_at=[days_ago(-99999)]) == [0.5]  # the bonus is infinite


@pytest.mark.parametrize("setting", [{"half_life_days": 0}, {"weight": 0}])
def test_zero_switches_the_boost_off(setting: dict[str, float]) -> None:
    frame = rows(score=[0.2, 0.9])
    assert RecencyBoost(**setting)(frame, BATCH).equals(frame)


def test_a_weight_below_zero_takes_from_what_is_new() -> None:
    assert boosted(RecencyBoost(weight=-0.2), created_at=[days_ago(14)]) == [pytest.approx(0.5 - 0.2 / math.e)]


@pytest.mark.parametrize(
    ("name", "allowed", "values"),
    [("half_life_days", ">= 0", (-3, math.nan, math.inf)), ("weight", "a finite number", (math.nan, math.inf))],
)
def test_a_bad_number_is_refused(name: str, allowed: str, values: tuple[float, ...]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=f"{name} must be {allowed}, got {value}"):
            RecencyBoost(**{name: value})
