"""Importance as a factor."""

import math
from dataclasses import dataclass
from functools import cache

import polars as pl

from lcm.protocols import Batch
from lcm.ranking.clamp import clamp01
from lcm.ranking.ordering import best_first

_DEFAULT_IMPORTANCE = 0.7


@dataclass(frozen=True, slots=True)
class ImportanceWeight:
    """score (base_weight + importance_weight importance), clamped to [0, 1].

    A missing importance counts as 0.7, one that is no finite number as 0.

    Source: memory-lancedb-pro, applyImportanceWeight.
    """

    base_weight: float = 0.7
    importance_weight: float = 0.3

    def __post_init__(self) -> None:
        for name in ("base_weight", "importance_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be >= 0, got {getattr(self, name)}")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(frame.with_columns(score=_weighted(self)))


@cache
def _weighted(settings: ImportanceWeight) -> pl.Expr:
    score, importance = pl.col("score"), pl.col("importance").fill_null(_DEFAULT_IMPORTANCE)
    factor = settings.base_weight + settings.importance_weight * importance
    return clamp01(score * factor, settings.base_weight * score)
