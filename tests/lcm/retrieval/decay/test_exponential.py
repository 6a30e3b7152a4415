"""Exponential decay; its laws are in tests/conformance."""

import math
from datetime import timedelta

import polars as pl
import pytest

from lcm.clock import EPOCH
from lcm.retrieval.decay.exponential import Exponential
from tests.lcm.retrieval.decay.frames import NOW, rows


def left(decay: Exponential, **columns: list[object]) -> list[float]:
    return rows(**columns).select(decay.multiplier()).to_series().to_list()


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
    assert frame.select(Exponential(0.1, 0.1, 0.1).strength()).item() == pytest.approx(math.exp(-0.5))


def test_without_a_rate_nothing_decays() -> None:
    assert left(Exponential(0, 0, 0), created_at=[NOW - timedelta(days=9999)]) == [1.0]


@pytest.mark.parametrize("name", ["session_rate", "durable_rate", "global_rate"])
@pytest.mark.parametrize("rate", [-1e-9, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(name: str, rate: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 0, got {rate}"):
        Exponential(**{name: rate})


def test_both_give_floats() -> None:
    found = rows(score=[0.5]).select(Exponential().multiplier().alias("m"), Exponential().strength().alias("s"))
    assert set(found.schema.values()) == {pl.Float64()}
