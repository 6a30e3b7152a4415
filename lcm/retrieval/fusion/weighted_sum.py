"""Weighted sum of the two branches, with a floor that keeps strong lexical hits."""

from dataclasses import dataclass
from functools import cache

import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.ordering import best_first


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """Fuse dense_score v and lexical_score b, each 0 where its branch did not return the document.

    In the dense branch: max(w_v v + w_b b, floor_ratio b if b >= floor_from else 0). Found by words alone: b itself,
    unweighted. Both clamped to [0, 1] where `clamp` says so; what is not a number becomes 0.1.

    Source: memory-lancedb-pro, fuseResults.
    """

    dense_weight: float = 0.7
    lexical_weight: float = 0.3
    floor_ratio: float = 0.92
    """0 switches the floor off."""
    floor_from: float = 0.75
    clamp: bool = True

    @property
    def gives_unit_scores(self) -> bool:
        return self.clamp

    def __post_init__(self) -> None:
        check_weights(self, "dense_weight", "lexical_weight", "floor_ratio")
        check_range(self, "floor_from")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(frame.with_columns(score=_fused(self)))


@cache
def _fused(settings: WeightedSum) -> pl.Expr:
    dense, lexical = pl.col("dense_score").fill_null(0.0), pl.col("lexical_score").fill_null(0.0)
    total = settings.dense_weight * dense + settings.lexical_weight * lexical
    if settings.floor_ratio > 0:
        floor = pl.when(lexical >= settings.floor_from).then(settings.floor_ratio * lexical).otherwise(0.0)
        # A NaN must reach the replacement below, as in the original: it compares as larger than any number.
        total = pl.when(total >= floor).then(total).otherwise(floor)
    fused = pl.when(pl.col("dense_rank").is_not_null()).then(total).otherwise(lexical)
    clamped = fused.clip(0.0, 1.0) if settings.clamp else fused
    return pl.when(fused.is_finite()).then(clamped).otherwise(0.1)
