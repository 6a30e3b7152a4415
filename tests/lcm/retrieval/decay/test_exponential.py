"""Exponential decay; its laws are in tests/conformance."""

import math
from datetime import timedelta

import pytest

from lcm.clock import EPOCH
from lcm.protocols.retrieval import Columns
from lcm.retrieval.decay import Exponential
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import NOW, rows


def left(decay: Exponential, **columns: list[object]) -> list[float]:
    return decay.multiplier(Columns(rows(**columns))).tolist()


@pytest.mark.parametrize(("whose", "rate"), [("session", 1e-4), ("durable", 1e-5), ("global", 2e-6)])
def test_half_is_left_after_the_half_life_of_its_class(whose: str, rate: float) -> None:
    half_life = timedelta(seconds=round(math.log(2) / rate, 3))
    found = left(Exponential(), created_at=[NOW, NOW - half_life, NOW - 2 * half_life], scope_class=[whose] * 3)
    assert found == [1.0, pytest.approx(1 / 2, abs=1e-6), pytest.approx(1 / 4, abs=1e-6)]


def test_the_future_and_what_has_no_time_is_new() -> None:
    assert left(Exponential(), created_at=[NOW + timedelta(days=9), EPOCH, None]) == [1.0, 1.0, 1.0]


def test_of_no_known_class_it_decays_as_what_everybody_shares() -> None:
    hour_ago = [NOW - timedelta(hours=1)]
    assert left(Exponential(), created_at=hour_ago, scope_class=[None]) == [pytest.approx(math.exp(-2e-6 * 3600))]


def test_one_rate_for_all_needs_no_class() -> None:
    frame = rows(created_at=[NOW - timedelta(seconds=5)]).drop("scope_class")
    assert Exponential(0.1, 0.1, 0.1).strength(Columns(frame)).item() == pytest.approx(math.exp(-0.5))


def test_a_rate_that_is_none_is_refused() -> None:
    bad = [-1e-9, math.inf, math.nan]
    assert_refused(Exponential, "be >= 0", session_rate=bad, durable_rate=bad, global_rate=bad)
