"""Scores of any scale to scores in [0, 1], for the steps behind that reckon with those."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch, Expansion, Stage
from lcm.retrieval.frames import beside
from lcm.retrieval.ranking.ordering import of_queries, query_numbers


@dataclass(frozen=True, slots=True)
class MinMax:
    """score = (score - least) / (greatest - least) of the query's candidates; 1 where all are equal. The order stays.

    A reranker blends the score with one in [0, 1], a decay multiplies it, a summary lends a share of it to what lies
    beneath, a minimum cuts at it: none of that means anything of a standard score or a learnt sum, which may be below
    0, nor of a reciprocal rank. Idle where the scores are on that scale by themselves, and where nothing behind
    reckons with it.

    Source: ours; as search engines bring scores of several branches together.
    """

    reads = ()

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        is_unit = all(getattr(stage, "gives_unit_scores", True) for stage in before)
        return is_unit or not any(getattr(stage, "reads_unit_scores", False) for stage in behind)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return beside(frame, [pl.Series("score", _scaled(frame), nan_to_null=True)])


def _scaled(frame: pl.DataFrame) -> Numbers:
    score, queries = Columns(frame).numbers("score"), query_numbers(frame)
    least, greatest = of_queries(np.fmin, score, queries), of_queries(np.fmax, score, queries)
    spread = greatest - least
    is_spread = spread > 0
    return np.where(is_spread, (score - least) / np.where(is_spread, spread, 1.0), 1.0)
