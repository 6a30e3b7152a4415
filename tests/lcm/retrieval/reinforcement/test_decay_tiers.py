"""When a decay tier changes, at the very bounds; the vectors of the original are in tests/golden."""

import math

import polars as pl
import pytest

from lcm.retrieval.reinforcement.decay_tiers import DecayTiers
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows

AT_CORE = {"decay_tier": "working", "access_count": 10, "strength": 0.7, "importance": 0.8}
AT_WORKING = {"decay_tier": "peripheral", "access_count": 3, "strength": 0.4}


def step(strength: float | None, tiers: DecayTiers | None = None, **columns: object) -> str | None:
    frame = rows(**{name: [value] for name, value in columns.items()})
    moves = (tiers or DecayTiers()).transitions(frame, pl.lit(strength, pl.Float64), NOW)
    assert moves.columns == ["document_id", "from_tier", "to_tier", "reason"]
    assert moves["from_tier"].to_list() == frame["decay_tier"].to_list()[: len(moves)]
    return moves["to_tier"].item() if len(moves) else None


@pytest.mark.parametrize(
    ("reached", "to_tier", "just_missed"),
    [
        (AT_WORKING, "working", {"access_count": 2}),
        (AT_WORKING, "working", {"strength": 0.3999}),
        (AT_CORE, "core", {"access_count": 9}),
        (AT_CORE, "core", {"strength": 0.6999}),
        (AT_CORE, "core", {"importance": 0.7999}),
    ],
)
def test_a_document_rises_at_its_thresholds(reached: dict, to_tier: str, just_missed: dict) -> None:
    assert step(**reached) == to_tier
    assert step(**reached | just_missed) is None


def test_a_weak_document_sinks_below_the_threshold_only() -> None:
    assert step(0.1499, decay_tier="working", access_count=99) == "peripheral"
    assert step(0.15, decay_tier="working", access_count=99) is None


def test_an_old_document_sinks_where_it_is_little_used() -> None:
    assert step(0.5, decay_tier="working", access_count=2, created_at=days_ago(60.001)) == "peripheral"
    assert step(0.5, decay_tier="working", access_count=2, created_at=days_ago(60)) is None
    assert step(0.5, decay_tier="working", access_count=3, created_at=days_ago(99)) is None


def test_core_is_left_only_when_weak_and_little_used() -> None:
    assert step(0.1, decay_tier="core", access_count=2) == "working"
    assert step(0.1, decay_tier="core", access_count=3) is None
    assert step(0.15, decay_tier="core", access_count=2) is None


def test_a_document_never_moves_two_tiers() -> None:
    assert step(1.0, decay_tier="peripheral", access_count=999, importance=1.0) == "working"
    assert step(0.0, decay_tier="core", access_count=0, created_at=days_ago(999)) == "working"


@pytest.mark.parametrize("decay_tier", [None, "none"])
def test_an_unknown_tier_stays(decay_tier: str | None) -> None:
    assert step(0.0, decay_tier=decay_tier) is None


def test_without_a_strength_nothing_moves_and_no_number_never_rises() -> None:
    assert step(None, decay_tier="working", created_at=days_ago(99)) is None
    assert step(math.nan, **{name: value for name, value in AT_CORE.items() if name != "strength"}) is None


def test_a_step_says_why() -> None:
    documents = rows(decay_tier=["working", "working"], created_at=[NOW, days_ago(70)]).with_columns(
        strength=pl.Series([0.1, 0.5])
    )
    moves = DecayTiers().transitions(documents, pl.col("strength"), NOW)
    assert moves.select("document_id", "reason").rows() == [
        ("d0", "weak: 0 accesses, strength 0.1"),
        ("d1", "old and little used: 0 accesses, strength 0.5, 70.0 days"),
    ]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"core_access_threshold": 0}, "core_access_threshold must be >= 1, got 0"),
        ({"core_composite_threshold": 1.1}, r"core_composite_threshold must be in \[0, 1\], got 1.1"),
        ({"working_composite_threshold": math.nan}, r"working_composite_threshold must be in \[0, 1\], got nan"),
        ({"peripheral_age_days": 0}, "peripheral_age_days must be > 0, got 0"),
        ({"peripheral_age_days": math.nan}, "peripheral_age_days must be > 0, got nan"),
    ],
)
def test_a_bad_threshold_is_refused(setting: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DecayTiers(**setting)
