"""Decay tiers: how a document rises by use and sinks without it."""

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lcm.checks import check_range
from lcm.records.document import DEFAULT_RATING


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
