"""Weighted sum of branches, with a floor that keeps strong lexical hits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import beside, worked_out
from lcm.retrieval.fusion.branch_weights import further_weights
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.ranking.sums import in_order


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """Fuse dense_score v and lexical_score b, each 0 where its branch did not return the document.

    In the dense branch: max(w_v v + w_b b, floor_ratio b if b >= floor_from else 0). Found by words alone: b itself,
    unweighted. Of what these two give, at weight 1, and the scores of all further branches, at their weights, it is the
    mean; a branch that `weights` does not name weighs 1. Clamped to [0, 1] where `clamp` says so; what is not a number
    becomes 0.1.

    Source: memory-lancedb-pro, fuseResults; further branches are ours.
    """

    dense_weight: float = 0.7
    lexical_weight: float = 0.3
    floor_ratio: float = 0.92
    """0 switches the floor off."""
    floor_from: float = 0.75
    clamp: bool = True
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of the branches beside dense and lexical, by name."""
    reads = ("dense_score", "lexical_score", "dense_rank")
    weighs_branches = True

    @property
    def gives_unit_scores(self) -> bool:
        return self.clamp

    def __post_init__(self) -> None:
        check_weights(self, "dense_weight", "lexical_weight", "floor_ratio")
        check_range(self, "floor_from")
        check_range(self, "weights", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        further = tuple(further_weights(frame, self.weights).items())
        weights = (self.dense_weight, self.lexical_weight, self.floor_ratio, self.floor_from)
        return best_first(beside(frame, [worked_out(frame, _mean(weights, further, self.clamp), "score")]))


def _of_two(dense_weight: float, lexical_weight: float, floor_ratio: float, floor_from: float) -> pl.Expr:
    dense, lexical = pl.col("dense_score").fill_null(0.0), pl.col("lexical_score").fill_null(0.0)
    total = dense_weight * dense + lexical_weight * lexical
    if floor_ratio > 0:
        floor = pl.when(lexical >= floor_from).then(floor_ratio * lexical).otherwise(0.0)
        # A NaN must reach the replacement below, as in the original: it compares as larger than any number.
        total = pl.when(total >= floor).then(total).otherwise(floor)
    return pl.when(pl.col("dense_rank").is_not_null()).then(total).otherwise(lexical)


@cache
def _mean(weights: tuple[float, float, float, float], further: tuple[tuple[str, float], ...], clamp: bool) -> pl.Expr:
    fused = of_two = _of_two(*weights)
    if further:
        terms = (weight * pl.col(f"{name}_score") for name, weight in further)
        fused = in_order([of_two, *terms]) / (1.0 + sum(weight for _, weight in further))
    clamped = fused.clip(0.0, 1.0) if clamp else fused
    return pl.when(fused.is_finite()).then(clamped).otherwise(0.1)
