"""The formulas of the Weibull decay, by hand; the vectors of the original are in tests/golden."""

import math
import re
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.decay.weibull import Weibull
from pipelines.config import building, composition, conf_folder
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows

LN2 = math.log(2)
PRESETS = sorted((conf_folder.conf_dir() / "decay").glob("weibull*.yaml"))


def values(expression: pl.Expr, **columns: list[object]) -> list[float]:
    return rows(**columns).select(value=expression)["value"].to_list()


def test_the_future_and_the_unknown_are_new() -> None:
    assert values(Weibull().recency(), created_at=[days_ago(-9), None]) == [1.0, 1.0]


def test_recency_may_lift_an_unused_document() -> None:
    unused = {"created_at": [NOW], "importance": [0.5], "confidence": [0.5]}
    assert values(Weibull().multiplier(), **unused) == [pytest.approx(0.3 + 0.7 * 0.7)]
    assert values(Weibull(recency_lifts=True).multiplier(), **unused) == [pytest.approx(1.0)]


MEMORIES = st.fixed_dictionaries(
    {
        "importance": st.floats(-1, 5),
        "confidence": st.floats(-1, 2),
        "access_count": st.integers(-1, 3) | st.integers(4, 10_000),
        "created_at": st.integers(-3000, 400).map(lambda hours: days_ago(hours / -24)),
        "last_accessed_at": st.integers(-3000, 400).map(lambda hours: days_ago(hours / -24)),
        "decay_tier": st.sampled_from(["core", "working", "peripheral", None]),
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
    recency = math.exp(-LN2 / half_life * idle_days ** getattr(decay, f"beta_{memory['decay_tier'] or 'working'}"))
    frequency = 1 - math.exp(-count / decay.access_saturation)
    if count > 1:
        span_days = max(1.0, (active - memory["created_at"]) / timedelta(days=1))
        frequency *= 0.5 + 0.5 * math.exp(-span_days / (count - 1) / decay.access_gap_days)
    intrinsic = memory["importance"] * memory["confidence"]
    return decay.recency_weight * recency + decay.frequency_weight * frequency + decay.intrinsic_weight * intrinsic


@given(st.lists(MEMORIES, min_size=1, max_size=8), st.tuples(*[st.floats(0.1, 1)] * 3))
def test_the_strength_of_each_memory_is_that_of_the_plain_formulas(
    memories: list[dict[str, Any]], weights: tuple[float, float, float]
) -> None:
    decay = Weibull(recency_weight=weights[0], frequency_weight=weights[1], intrinsic_weight=weights[2])
    columns = {name: [memory[name] for memory in memories] for name in memories[0]}
    expected = [plain_strength(decay, memory) for memory in memories]
    assert values(decay.strength(), **columns) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_says_its_true_half_lives(preset) -> None:
    said = re.search(r"^# static (.*); dynamic (.*)\.$", preset.read_text(), re.MULTILINE)
    decay = building.build(composition.composed([f"decay={preset.stem}"]), "decay")
    for temporal_type, part in zip(("static", "dynamic"), said.groups(), strict=True):
        half_lives = {tier: float(days) for tier, days in re.findall(r"(\w+) ([\d.]+)", part)}
        assert set(half_lives) == {"core", "working", "peripheral"}
        for tier, days in half_lives.items():
            around = [days_ago(days - 0.051), days_ago(days + 0.051)]
            same = {"decay_tier": [tier] * 2, "temporal_type": [temporal_type] * 2}
            before, after = values(decay.recency(), created_at=around, **same)
            assert before > 0.5 > after


def test_settings_out_of_range_are_refused() -> None:
    scales = (
        *("recency_half_life_days", "beta_core", "beta_working", "beta_peripheral"),
        *("dynamic_divisor", "access_saturation", "access_gap_days"),
    )
    assert_refused(Weibull, "be > 0", **{name: [0, -3, math.nan, math.inf] for name in scales})
    shares = ("recency_weight", "stale_threshold", "search_boost_min", "floor_core")
    assert_refused(Weibull, "be in [0, 1]", **{name: [-0.1, 1.1, math.nan] for name in shares})
    with pytest.raises(ValueError, match="recency_weight, frequency_weight and intrinsic_weight must not all be 0"):
        Weibull(recency_weight=0, frequency_weight=0, intrinsic_weight=0)
