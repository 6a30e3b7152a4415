"""The formulas of the Weibull decay, by hand; the vectors of the original are in tests/golden."""

import math
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.decay.weibull import Weibull
from pipelines.config import building, composition, conf_folder
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows

LN2 = math.log(2)
PRESETS = sorted((conf_folder.conf_dir() / "decay").glob("weibull*.yaml"))
ANY_NUMBER = st.one_of(st.none(), st.floats())


def values(expression: pl.Expr, **columns: list[object]) -> list[float]:
    return rows(**columns).select(value=expression)["value"].to_list()


def recency_half_life_days(decay: Weibull, tier: str, temporal_type: str) -> float:
    """By bisection: the age at which recency crosses 1/2 at importance 0.7."""
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        # In milliseconds an instant is exact to 1e-8 days.
        (recency,) = values(
            decay.recency(), created_at=[days_ago(middle)], decay_tier=[tier], temporal_type=[temporal_type]
        )
        low, high = (middle, high) if recency > 0.5 else (low, middle)
        if high - low < 1e-4:
            break
    return low


def test_recency_is_a_half_after_the_half_life_of_a_document_without_importance() -> None:
    assert values(Weibull().recency(), created_at=[days_ago(30)], importance=[0.0]) == [pytest.approx(0.5)]


def test_importance_lengthens_the_half_life_exponentially() -> None:
    half_life = 30 * math.exp(1.5 * 0.4)
    found = values(Weibull().recency(), created_at=[days_ago(10)], importance=[0.4])
    assert found == [pytest.approx(math.exp(-LN2 / half_life * 10))]


def test_beta_bends_the_age_by_tier() -> None:
    found = values(
        Weibull().recency(),
        created_at=[days_ago(20)] * 4,
        importance=[0.0] * 4,
        decay_tier=["core", "working", "peripheral", None],
    )
    assert found == pytest.approx([math.exp(-LN2 / 30 * 20**beta) for beta in (0.8, 1.0, 1.3, 1.0)])


def test_a_dynamic_document_has_a_third_of_the_half_life() -> None:
    found = values(Weibull().recency(), created_at=[days_ago(10)], importance=[0.0], temporal_type=["dynamic"])
    assert found == [pytest.approx(0.5)]


def test_age_counts_from_the_last_access_only_where_there_was_one() -> None:
    accessed = {"created_at": [days_ago(60)] * 3, "last_accessed_at": [days_ago(30), days_ago(30), None]}
    found = values(Weibull().recency(), importance=[0.0] * 3, access_count=[0, 1, 1], **accessed)
    assert found == pytest.approx([0.25, 0.5, 0.25])


def test_the_future_and_the_unknown_are_new() -> None:
    assert values(Weibull().recency(), created_at=[days_ago(-9), None]) == [1.0, 1.0]


def test_frequency_saturates_with_accesses() -> None:
    found = values(Weibull().frequency(), access_count=[0, 1])
    assert found == pytest.approx([0.0, 1 - math.exp(-1 / 5)])


def test_repeated_accesses_count_less_the_further_apart_they_are() -> None:
    found = values(
        Weibull().frequency(),
        access_count=[5, 5],
        created_at=[days_ago(121), NOW],
        last_accessed_at=[days_ago(1), NOW],
    )
    base = 1 - math.exp(-5 / 5)
    # 120 days in 4 gaps; a span below a day counts as one day.
    assert found == pytest.approx([base * (0.5 + 0.5 * math.exp(-30 / 30)), base * (0.5 + 0.5 * math.exp(-0.25 / 30))])


def test_strength_is_the_weighted_sum_as_the_weights_stand() -> None:
    decay = Weibull(recency_weight=0.5, frequency_weight=0.25, intrinsic_weight=1.0)
    found = values(decay.strength(), access_count=[1], last_accessed_at=[NOW], importance=[0.6], confidence=[0.5])
    assert found == [pytest.approx(0.5 * 1 + 0.25 * (1 - math.exp(-1 / 5)) + 1.0 * 0.6 * 0.5)]


def test_a_document_loses_at_most_what_its_tier_lets_it_lose() -> None:
    dead = {"created_at": [days_ago(9999)] * 3, "importance": [0.0] * 3}
    found = values(Weibull().multiplier(), decay_tier=["core", "working", "peripheral"], **dead)
    assert found == pytest.approx([0.3 + 0.7 * 0.9, 0.3 + 0.7 * 0.7, 0.3 + 0.7 * 0.5])


def test_recency_may_lift_an_unused_document() -> None:
    unused = {"created_at": [NOW], "importance": [0.5], "confidence": [0.5]}
    assert values(Weibull().multiplier(), **unused) == [pytest.approx(0.3 + 0.7 * 0.7)]
    assert values(Weibull(recency_lifts=True).multiplier(), **unused) == [pytest.approx(1.0)]


def test_stale_is_strictly_below_the_threshold() -> None:
    fresh = {"created_at": [NOW], "importance": [0.0]}  # recency 1: strength 0.4
    assert values(Weibull(stale_threshold=0.4).is_stale(), **fresh) == [False]
    assert values(Weibull(stale_threshold=0.41).is_stale(), **fresh) == [True]


def test_a_rating_that_is_no_number_counts_as_the_default() -> None:
    found = values(Weibull().strength(), importance=[math.nan, None, math.inf, 0.7], confidence=[0.7, 0.7, 0.7, None])
    assert found == [found[3]] * 4


MEMORIES = st.fixed_dictionaries(
    {
        "importance": st.floats(-1, 5),
        "confidence": st.floats(-1, 2),
        "access_count": st.integers(-3, 10_000),
        "created_at": st.integers(-3000, 400).map(lambda hours: days_ago(hours / -24)),
        "last_accessed_at": st.integers(-3000, 400).map(lambda hours: days_ago(hours / -24)),
        "decay_tier": st.sampled_from(["core", "working", "peripheral"]),
        "temporal_type": st.sampled_from(["static", "dynamic", None]),
    }
)


def plain_strength(decay: Weibull, memory: dict[str, Any]) -> float:
    """The specification's formulas for one memory, in the order in which it gives them."""
    count = memory["access_count"]
    active = memory["last_accessed_at"] if count > 0 else memory["created_at"]
    idle_days = max(0.0, (NOW - active) / timedelta(days=1))
    half_life = decay.recency_half_life_days / (decay.dynamic_divisor if memory["temporal_type"] == "dynamic" else 1)
    half_life *= math.exp(decay.importance_modulation * memory["importance"])
    recency = math.exp(-LN2 / half_life * idle_days ** getattr(decay, f"beta_{memory['decay_tier']}"))
    frequency = 1 - math.exp(-count / decay.access_saturation)
    if count > 1:
        span_days = max(1.0, (active - memory["created_at"]) / timedelta(days=1))
        frequency *= 0.5 + 0.5 * math.exp(-span_days / (count - 1) / decay.access_gap_days)
    intrinsic = memory["importance"] * memory["confidence"]
    return decay.recency_weight * recency + decay.frequency_weight * frequency + decay.intrinsic_weight * intrinsic


@given(st.lists(MEMORIES, min_size=1, max_size=8))
def test_the_strength_of_each_memory_is_that_of_the_plain_formulas(memories: list[dict[str, Any]]) -> None:
    columns = {name: [memory[name] for memory in memories] for name in memories[0]}
    expected = [plain_strength(Weibull(), memory) for memory in memories]
    assert values(Weibull().strength(), **columns) == pytest.approx(expected, abs=1e-12)


@given(
    importance=ANY_NUMBER,
    confidence=ANY_NUMBER,
    access_count=st.one_of(st.none(), st.integers(-(2**62), 2**62)),
    created_at=st.one_of(st.none(), st.datetimes().map(lambda instant: instant.replace(tzinfo=NOW.tzinfo))),
    tier=st.sampled_from([None, "core", "working", "peripheral", "none"]),
)
def test_nothing_that_comes_out_is_no_number(**memory: object) -> None:
    memory["decay_tier"] = memory.pop("tier")
    decay = Weibull(recency_lifts=True)
    frame = rows(**{name: [value] for name, value in memory.items()}).select(
        decay.recency().alias("recency"), decay.strength().alias("strength"), decay.multiplier().alias("multiplier")
    )
    recency, strength, multiplier = frame.row(0)
    assert 0 <= recency <= 1
    assert not math.isnan(strength)
    assert decay.search_boost_min <= multiplier <= 1


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_says_its_true_half_lives(preset) -> None:
    said = re.search(r"^# static (.*); dynamic (.*)\.$", preset.read_text(), re.MULTILINE)
    decay = building.build(composition.composed([f"decay={preset.stem}"]), "decay")
    for temporal_type, part in zip(("static", "dynamic"), said.groups(), strict=True):
        half_lives = {tier: float(days) for tier, days in re.findall(r"(\w+) ([\d.]+)", part)}
        assert set(half_lives) == {"core", "working", "peripheral"}
        for tier, days in half_lives.items():
            assert recency_half_life_days(decay, tier, temporal_type) == pytest.approx(days, abs=0.051)


@pytest.mark.parametrize(
    "name", ["recency_half_life_days", "beta_core", "beta_working", "beta_peripheral", "dynamic_divisor",
             "access_saturation", "access_gap_days"],
)  # fmt: skip
@pytest.mark.parametrize("value", [0, -3, math.nan, math.inf])
def test_a_scale_that_is_not_above_zero_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be > 0, got {value}"):
        replace(Weibull(), **{name: value})


@pytest.mark.parametrize("name", ["recency_weight", "stale_threshold", "search_boost_min", "floor_core"])
@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_share_outside_zero_to_one_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be in \[0, 1\], got {value}"):
        replace(Weibull(), **{name: value})


def test_weights_that_sum_to_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="recency_weight, frequency_weight and intrinsic_weight must not all be 0"):
        Weibull(recency_weight=0, frequency_weight=0, intrinsic_weight=0)


def test_an_expression_is_built_once() -> None:
    assert Weibull().multiplier() is Weibull().multiplier()
    assert Weibull().multiplier() is not Weibull(floor_core=0.5).multiplier()
