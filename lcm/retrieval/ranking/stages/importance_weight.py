"""Importance as a factor."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns, Numbers
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
        return rescored(frame, self._weighted, fallback_ratio=self.base_weight)

    def _weighted(self, columns: Columns) -> Numbers:
        importance = columns.numbers("importance", missing=DEFAULT_RATING)
        return columns.numbers("score") * (self.base_weight + self.importance_weight * importance)
