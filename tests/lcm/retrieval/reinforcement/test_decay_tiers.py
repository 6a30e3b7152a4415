"""When a decay tier changes, at the very bounds; the vectors of the original are in tests/golden."""

import math

import polars as pl

from lcm.retrieval.reinforcement import DecayTiers
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows

AT_CORE = {"decay_tier": "working", "access_count": 10, "strength": 0.7, "importance": 0.8}


def step(strength: float | None, tiers: DecayTiers | None = None, **columns: object) -> str | None:
    frame = rows(**{name: [value] for name, value in columns.items()})
    moves = (tiers or DecayTiers()).transitions(frame, pl.Series([strength], dtype=pl.Float64), NOW)
    assert moves.columns == ["document_id", "from_tier", "to_tier", "reason"]
    assert moves["from_tier"].to_list() == frame["decay_tier"].to_list()[: len(moves)]
    return moves["to_tier"].item() if len(moves) else None


def test_what_is_old_and_little_used_sinks_and_no_document_moves_two_tiers() -> None:
    old = {"decay_tier": "working", "access_count": 2}
    assert step(0.5, **old, created_at=days_ago(60.001)) == "peripheral"
    assert step(0.5, **old, created_at=days_ago(60)) is None
    assert step(0.5, **old | {"access_count": 3}, created_at=days_ago(99)) is None
    assert step(0.0, decay_tier="core", access_count=0, created_at=days_ago(999)) == "working"
    assert step(1.0, decay_tier="peripheral", access_count=999, importance=1.0) == "working"
    assert step(0.0, decay_tier="none") is step(0.0, decay_tier=None) is None


def test_without_a_strength_nothing_moves_and_no_number_never_rises() -> None:
    assert step(None, decay_tier="working", created_at=days_ago(99)) is None
    assert step(math.nan, **{name: value for name, value in AT_CORE.items() if name != "strength"}) is None


def test_a_step_says_why() -> None:
    documents = rows(decay_tier=["working", "working"], created_at=[NOW, days_ago(70)]).with_columns(
        strength=pl.Series([0.1, 0.5])
    )
    moves = DecayTiers().transitions(documents, documents["strength"], NOW)
    assert moves.select("document_id", "reason").rows() == [
        ("d0", "weak: 0 accesses, strength 0.1"),
        ("d1", "old and little used: 0 accesses, strength 0.5, 70.0 days"),
    ]


def test_a_bad_threshold_is_refused() -> None:
    assert_refused(DecayTiers, "be >= 1", core_access_threshold=0)
    assert_refused(DecayTiers, "be in [0, 1]", core_composite_threshold=1.1, working_composite_threshold=math.nan)
    assert_refused(DecayTiers, "be > 0", peripheral_age_days=[0, math.nan])
