"""Scores of any scale to scores in [0, 1], for the steps behind that reckon with those."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch, Expansion, Stage
from lcm.retrieval.formula import beside, worked_out


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
        return beside(frame, [worked_out(frame, _SCALED, "score")])


def _scaled(score: pl.Expr) -> pl.Expr:
    least, greatest = score.min().over("query_id"), score.max().over("query_id")
    spread = greatest - least
    return pl.when(spread > 0).then((score - least) / spread).otherwise(1.0)


_SCALED = _scaled(pl.col("score"))
