"""Time decay and the half-life that use lengthens; the vectors of the original are in tests/golden."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.clock import EPOCH
from lcm.retrieval.ranking.stages.time_decay import TimeDecay, effective_half_life
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows

BATCH = documents_batch([])


def decayed(stage: TimeDecay | None = None, **columns: list[object]) -> list[float]:
    frame = rows(**columns)
    return (stage or TimeDecay())(frame, BATCH).sort("document_id")["score"].to_list()


def test_half_of_the_score_is_lost_with_age() -> None:
    found = decayed(score=[0.8] * 3, created_at=[NOW, days_ago(60), days_ago(9999)])
    assert found == pytest.approx([0.8, 0.8 * (0.5 + 0.5 / math.e), 0.4])


def test_a_dynamic_document_decays_three_times_as_fast() -> None:
    found = decayed(score=[0.8], created_at=[days_ago(20)], temporal_type=["dynamic"])
    assert found == [pytest.approx(0.8 * (0.5 + 0.5 / math.e))]


def test_use_lengthens_the_half_life() -> None:
    columns = {"created_at": [days_ago(60)] * 2, "last_accessed_at": [NOW, days_ago(30)], "access_count": [3, 3]}
    half_lives = [60 + 60 * 0.5 * math.log(1 + 3), 60 + 60 * 0.5 * math.log(1 + 3 / 2)]  # 30 days halve the accesses
    assert decayed(score=[1.0] * 2, **columns) == pytest.approx([0.5 + 0.5 * math.exp(-60 / h) for h in half_lives])


def test_use_lengthens_no_further_than_the_cap() -> None:
    found = decayed(score=[1.0], created_at=[days_ago(180)], last_accessed_at=[NOW], access_count=[10_000])
    assert found == [pytest.approx(0.5 + 0.5 / math.e)]  # 3 times 60 days


@given(st.integers(-3, 10_000), st.integers(-2000, 200), st.floats(-1, 2), st.floats(0.5, 10))
def test_the_half_life_is_that_of_the_plain_formula(count: int, hours: int, factor: float, multiplier: float) -> None:
    remembered = count * 2 ** -(max(0.0, -hours / 24) / 30)
    longer = min(60 + 60 * factor * math.log1p(remembered), 60 * multiplier) if count > 0 and factor else 60
    frame = rows(access_count=[count], last_accessed_at=[days_ago(-hours / 24)])
    days = frame.select(days=effective_half_life(pl.lit(60.0), factor, multiplier))["days"].item()
    assert days == pytest.approx(longer, abs=1e-9)


@pytest.mark.parametrize(("count", "last"), [(0, NOW), (None, NOW), (9, None)])
def test_without_a_known_access_the_half_life_stays(count: int | None, last: object) -> None:
    found = decayed(score=[1.0], created_at=[days_ago(60)], last_accessed_at=[last], access_count=[count])
    assert found == [pytest.approx(0.5 + 0.5 / math.e)]


def test_an_unknown_time_is_now() -> None:
    assert decayed(created_at=[None, EPOCH]) == [0.5, 0.5]


def test_the_future_is_lifted_unless_clamped() -> None:
    tomorrow = {"score": [0.5], "created_at": [days_ago(-30)]}
    assert decayed(**tomorrow) == [pytest.approx(0.5 * (0.5 + 0.5 * math.exp(0.5)))]
    assert decayed(TimeDecay(clamp_future=True), **tomorrow) == [0.5]


def test_no_score_leaves_the_unit_interval() -> None:
    assert decayed(score=[1.5, -0.5, math.nan, None]) == [1.0, 0.0, 0.0, 0.0]


def test_the_older_steps_back() -> None:
    assert TimeDecay()(rows(created_at=[days_ago(9), NOW]), BATCH)["document_id"].to_list() == ["d1", "d0"]


def test_zero_switches_it_off() -> None:
    frame = rows(created_at=[days_ago(9), NOW])
    assert TimeDecay(half_life_days=0)(frame, BATCH).equals(frame)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"half_life_days": -3}, "half_life_days must be >= 0, got -3"),
        ({"half_life_days": math.nan}, "half_life_days must be >= 0, got nan"),
        ({"reinforcement_factor": -1}, "reinforcement_factor must be >= 0, got -1"),
        ({"max_half_life_multiplier": 0}, "max_half_life_multiplier must be > 0, got 0"),
        ({"dynamic_divisor": math.nan}, "dynamic_divisor must be > 0, got nan"),
        ({"access_half_life_days": 0}, "access_half_life_days must be > 0, got 0"),
        ({"floor_ratio": 1.1}, r"floor_ratio must be in \[0, 1\], got 1.1"),
    ],
)
def test_a_bad_number_is_refused(setting: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TimeDecay(**setting)
