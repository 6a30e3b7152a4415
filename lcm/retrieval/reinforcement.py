"""What being recalled does to a document: it counts, and decay tiers follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lcm.checks import check_range
from lcm.protocols.reinforcement import USE_SCHEMA
from lcm.protocols.retrieval import Columns, Decay
from lcm.records.document import DEFAULT_RATING
from lcm.retrieval.source.indexes import SCOPE_CLASS

_SESSION_SUMMARY = "session-summary"
_INSTANT = pl.Datetime("ms", "UTC")
_MOST = 10_000
"""Accesses that are counted."""


@dataclass(frozen=True, slots=True)
class NoReinforcement:
    """Being recalled changes nothing, so that queries can be asked in any order."""

    @property
    def recalled(self) -> int:
        return 0

    def after_recall(self, used_ids: Sequence[str], documents: pl.DataFrame, now: datetime) -> pl.DataFrame:
        return pl.DataFrame(schema=USE_SCHEMA)


@dataclass(frozen=True, slots=True)
class DecayTiers:
    """When a document moves between peripheral, working and core; one step at a time.

    Up: peripheral to working at working_access_threshold accesses and working_composite_threshold of strength;
    working to core at core_access_threshold, core_composite_threshold and core_importance_threshold. Down: working
    to peripheral below peripheral_composite_threshold of strength, or older than peripheral_age_days since creation
    with fewer accesses than working_access_threshold; core to working with too little of both.

    Source: memory-lancedb-pro, tier-manager.
    """

    core_access_threshold: int = 10
    core_composite_threshold: float = 0.7
    core_importance_threshold: float = 0.8
    peripheral_composite_threshold: float = 0.15
    peripheral_age_days: float = 60.0
    working_access_threshold: int = 3
    working_composite_threshold: float = 0.4

    def __post_init__(self) -> None:
        check_range(self, "core_access_threshold", "working_access_threshold", ge=1)
        check_range(
            self,
            "core_composite_threshold",
            "core_importance_threshold",
            "peripheral_composite_threshold",
            "working_composite_threshold",
            ge=0,
            le=1,
        )
        check_range(self, "peripheral_age_days", gt=0)

    def transitions(self, frame: pl.DataFrame, strength: pl.Series, now: datetime) -> pl.DataFrame:
        """The steps that are due.

        Args:
            frame: documents, with the columns that stages see.
            strength: of each document; one without a strength stays where it is.
            now: when they are judged.
        Returns:
            Columns document_id, from_tier, to_tier, reason; rows in the order of the frame.
        """
        judged, steps = frame.with_columns(_strength=strength), self._steps(now)
        to_tier, reason = pl.lit(None, pl.String), pl.lit(None, pl.String)
        for from_tier, to, is_due, why in reversed(steps):  # the first that is due wins
            takes = (pl.col("decay_tier") == from_tier) & is_due & pl.col("_strength").is_not_null()
            to_tier = pl.when(takes).then(pl.lit(to)).otherwise(to_tier)
            reason = pl.when(takes).then(why).otherwise(reason)
        moved = judged.select("document_id", from_tier="decay_tier", to_tier=to_tier, reason=reason)
        return moved.filter(pl.col("to_tier").is_not_null())

    def _steps(self, now: datetime) -> list[tuple[str, str, pl.Expr, pl.Expr]]:
        """From, to, when, why."""
        strength, accesses = pl.col("_strength"), pl.col("access_count").fill_null(0)
        importance = pl.when(pl.col("importance").is_finite()).then("importance").otherwise(DEFAULT_RATING)
        age_days = (pl.lit(now, pl.Datetime("ms", "UTC")) - pl.col("created_at")) / pl.duration(days=1)
        is_weak = strength < self.peripheral_composite_threshold
        is_little_used = accesses < self.working_access_threshold
        state = pl.format("{} accesses, strength {}", accesses, strength.round(3))
        return [
            (
                "peripheral",
                "working",
                (accesses >= self.working_access_threshold) & _reaches(strength, self.working_composite_threshold),
                pl.format("in use again: {}", state),
            ),
            (
                "working",
                "core",
                (accesses >= self.core_access_threshold)
                & _reaches(strength, self.core_composite_threshold)
                & (importance >= self.core_importance_threshold),
                pl.format("much used and important: {}, importance {}", state, importance.round(3)),
            ),
            ("working", "peripheral", is_weak, pl.format("weak: {}", state)),
            (
                "working",
                "peripheral",
                (age_days > self.peripheral_age_days) & is_little_used,
                pl.format("old and little used: {}, {} days", state, age_days.round(1)),
            ),
            ("core", "working", is_weak & is_little_used, pl.format("weak and little used: {}", state)),
        ]


def _reaches(strength: pl.Expr, threshold: float) -> pl.Expr:
    # Polars takes NaN for the greatest of all numbers.
    return strength.is_not_nan() & (strength >= threshold)


@dataclass(frozen=True, slots=True)
class Recall:
    """The first `recalled` documents of an answer count one access each; then decay tiers are looked after.

    Of the `maintained` newest documents, each moves one tier at most, judged by its strength after the access;
    session summaries never move.

    Source: memory-lancedb-pro, lifecycle maintenance: defined there, and called by nothing.
    """

    decay: Decay
    tiers: DecayTiers
    recalled: int = 5
    maintained: int = 100
    """0: tiers never change."""

    def __post_init__(self) -> None:
        if self.recalled < 1:
            raise ValueError(f"recalled must be >= 1, got {self.recalled}; reinforcement=none counts no use")
        check_range(self, "maintained", ge=0)

    def after_recall(self, used_ids: Sequence[str], documents: pl.DataFrame, now: datetime) -> pl.DataFrame:
        newer = pl.int_range(pl.len()).reverse()
        touched = (
            used(documents, used_ids, self.recalled, now)
            .with_columns(_is_newest=newer < self.maintained)
            .filter(pl.col("_is_used") | pl.col("_is_newest"))
        )
        judged = touched.filter(pl.col("_is_newest"), pl.col("kind").ne_missing(_SESSION_SUMMARY))
        if "scope_class" not in judged.columns:  # judged for itself, by nobody who asks
            judged = judged.with_columns(scope_class=pl.lit("durable", SCOPE_CLASS))
        asked = judged.with_columns(asked_at=pl.lit(now, _INSTANT))
        strength = pl.Series(self.decay.strength(Columns(asked)))
        steps = self.tiers.transitions(judged, strength, now).select("document_id", "to_tier")
        return (
            touched.join(steps, on="document_id", how="left", maintain_order="left")
            .filter(pl.col("_is_used") | pl.col("to_tier").is_not_null())
            .with_columns(decay_tier=pl.coalesce("to_tier", "decay_tier"))
            .select(list(USE_SCHEMA))
        )


def used(documents: pl.DataFrame, used_ids: Sequence[str], recalled: int, now: datetime) -> pl.DataFrame:
    """Count an access of the first `recalled` of these ids; `_is_used` says which documents they are."""
    used = list(dict.fromkeys(used_ids))[:recalled]
    count = pl.col("access_count").fill_null(0)
    return documents.with_columns(_is_used=pl.col("document_id").is_in(used)).with_columns(
        access_count=count + (pl.col("_is_used") & (count < _MOST)).cast(pl.Int64),
        last_accessed_at=pl.when("_is_used")
        .then(pl.max_horizontal("last_accessed_at", pl.lit(now, _INSTANT)))
        .otherwise("last_accessed_at"),
    )


@dataclass(frozen=True, slots=True)
class AccessCount:
    """The first `recalled` documents of an answer count one access each; decay tiers stay.

    Source: libravdb memory 1.4.4, after assembly: what stands in the context counts.
    """

    recalled: int = 8

    def __post_init__(self) -> None:
        if self.recalled < 1:
            raise ValueError(f"recalled must be >= 1, got {self.recalled}; reinforcement=none counts no use")

    def after_recall(self, used_ids: Sequence[str], documents: pl.DataFrame, now: datetime) -> pl.DataFrame:
        return used(documents, used_ids, self.recalled, now).filter("_is_used").select(list(USE_SCHEMA))
