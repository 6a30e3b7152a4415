"""Weighted sum of branches, with a floor that keeps strong lexical hits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.fusion.weighed import further_weights
from lcm.retrieval.ranking.ordering import best_first


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
        further = further_weights(frame, self.weights)
        score = self._score(Columns(frame), further)
        return best_first(beside(frame, [pl.Series("score", score)]))

    @np.errstate(all="ignore")
    def _score(self, columns: Columns, further: Mapping[str, float]) -> Numbers:
        fused = self._of_two(columns)
        if further:
            for name, weight in further.items():
                fused = fused + weight * columns.numbers(f"{name}_score", missing=0.0)
            fused = fused / (1.0 + sum(further.values()))
        return np.where(np.isfinite(fused), np.clip(fused, 0.0, 1.0) if self.clamp else fused, 0.1)

    def _of_two(self, columns: Columns) -> Numbers:
        dense, lexical = (columns.numbers(name, missing=0.0) for name in ("dense_score", "lexical_score"))
        total = self.dense_weight * dense + self.lexical_weight * lexical
        if self.floor_ratio > 0:
            floor = np.where(lexical >= self.floor_from, self.floor_ratio * lexical, 0.0)
            total = np.where(total < floor, floor, total)  # no number stays none, and is replaced above
        return np.where(np.isnan(columns.numbers("dense_rank")), lexical, total)
