"""Importance as a factor."""

from dataclasses import dataclass
from functools import cache

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.records.document import DEFAULT_RATING
from lcm.retrieval.ranking.stages.clamp import rescored


@dataclass(frozen=True, slots=True)
class ImportanceWeight:
    """score (base_weight + importance_weight importance), clamped to [0, 1].

    A missing importance counts as 0.7, one that is no finite number as 0.

    Source: memory-lancedb-pro, applyImportanceWeight.
    """

    base_weight: float = 0.7
    importance_weight: float = 0.3
    reads = ("importance",)

    def __post_init__(self) -> None:
        check_range(self, "base_weight", "importance_weight", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return rescored(frame, _weighted(self), fallback_ratio=self.base_weight)


@cache
def _weighted(settings: ImportanceWeight) -> pl.Expr:
    importance = pl.col("importance").fill_null(DEFAULT_RATING)
    return pl.col("score") * (settings.base_weight + settings.importance_weight * importance)
