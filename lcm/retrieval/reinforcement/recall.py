"""What being recalled does to a document: it counts, and decay tiers follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns
from lcm.protocols.reinforcement import USE_SCHEMA
from lcm.protocols.retrieval import Decay
from lcm.retrieval.reinforcement.decay_tiers import DecayTiers
from lcm.retrieval.source.candidates import SCOPE_CLASS

_SESSION_SUMMARY = "session-summary"
_INSTANT = pl.Datetime("ms", "UTC")
_MOST = 10_000
"""Accesses that are counted."""


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
