"""The formulas of the Weibull decay, by hand; the vectors of the original are in tests/golden."""

import math
import re
from collections.abc import Callable

import pytest

from lcm.protocols.retrieval import Columns, Numbers
from lcm.retrieval.decay import Weibull
from pipelines.config import building, composition, conf_folder
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows

PRESETS = sorted((conf_folder.conf_dir() / "decay").glob("weibull*.yaml"))


def values(formula: Callable[[Columns], Numbers], **columns: list[object]) -> list[float]:
    return formula(Columns(rows(**columns))).tolist()


def test_the_future_and_the_unknown_are_new() -> None:
    assert values(Weibull().recency, created_at=[days_ago(-9), None]) == [1.0, 1.0]


def test_recency_may_lift_an_unused_document() -> None:
    unused = {"created_at": [NOW], "importance": [0.5], "confidence": [0.5]}
    assert values(Weibull().multiplier, **unused) == [pytest.approx(0.3 + 0.7 * 0.7)]
    assert values(Weibull(recency_lifts=True).multiplier, **unused) == [pytest.approx(1.0)]


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
            before, after = values(decay.recency, created_at=around, **same)
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
