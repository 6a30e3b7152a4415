"""Reciprocal rank fusion: ranks alone decide."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.ordering import best_first


@dataclass(frozen=True, slots=True)
class ReciprocalRank:
    """score = sum over the branches that returned the document of weight / (k + rank), ranks 1-based.

    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009, with weights as is common since (all 1 there).
    """

    k: float = 60.0
    dense_weight: float = 1.0
    lexical_weight: float = 1.0

    def __post_init__(self) -> None:
        check_range(self, "k", ge=0)
        check_weights(self, "dense_weight", "lexical_weight")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        dense = (self.dense_weight / (self.k + pl.col("dense_rank"))).fill_null(0.0)
        lexical = (self.lexical_weight / (self.k + pl.col("lexical_rank"))).fill_null(0.0)
        return best_first(frame.with_columns(score=dense + lexical))
