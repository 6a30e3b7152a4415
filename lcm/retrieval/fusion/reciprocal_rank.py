"""Reciprocal rank fusion: ranks alone decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.columns import Columns
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.fusion.weighed import further_weights
from lcm.retrieval.ranking.ordering import best_first


@dataclass(frozen=True, slots=True)
class ReciprocalRank:
    """score = sum over the branches that returned the document of weight / (k + rank), ranks 1-based.

    A branch that `weights` does not name weighs 1.

    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009, with weights as is common since (all 1 there).
    """

    k: float = 60.0
    dense_weight: float = 1.0
    lexical_weight: float = 1.0
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of the branches beside dense and lexical, by name."""
    reads = ("dense_rank", "lexical_rank")
    weighs_branches = True
    gives_unit_scores = False  # a few hundredths, where others give a score near 1

    def __post_init__(self) -> None:
        check_range(self, "k", "dense_weight", "lexical_weight", "weights", ge=0)
        if any((self.dense_weight, self.lexical_weight, *self.weights.values())):
            check_weights(self, "dense_weight", "lexical_weight", "weights")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        weights = {"dense": self.dense_weight, "lexical": self.lexical_weight, **further_weights(frame, self.weights)}
        if not any(weights.values()):  # only the frame tells which branches there are that weigh 1 unnamed
            raise ValueError(
                f"every branch ({', '.join(weights)}) weighs 0: raise dense_weight, lexical_weight or weights"
            )
        columns, score = Columns(frame), np.zeros(len(frame))
        for name, weight in weights.items():
            rank = columns.numbers(f"{name}_rank")
            score += np.where(np.isnan(rank), 0.0, weight / (self.k + rank))
        return best_first(beside(frame, [pl.Series("score", score)]))
