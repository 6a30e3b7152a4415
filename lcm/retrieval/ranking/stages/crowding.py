"""Further passages of one turn count less: the best of them has told most of what it knows."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.turns import turn_of


@dataclass(frozen=True, slots=True)
class Crowding:
    """score - penalty * n * the standard deviation of the query's scores, where n of the turn's passages are better.

    Passages are the documents that one message or step was cut into; of equal ones the earlier row is the better.
    Changes nothing where every document is a turn of its own.

    Source: ours; after the diminishing returns of maximal marginal relevance (Carbonell and Goldstein 1998).
    """

    penalty: float = 1.0
    """In standard deviations; 0: none."""

    def __post_init__(self) -> None:
        check_range(self, "penalty", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        turns = frame.with_columns(_query=pl.col("query_id").rle_id(), _turn=turn_of(frame, "query_id"))
        better = (pl.col("score").rank("ordinal", descending=True) - 1).over("_query", "_turn").fill_null(0)
        finite = pl.when(pl.col("score").is_finite()).then("score")
        spread = finite.std(ddof=0).over("_query").fill_null(0.0)
        return turns.with_columns(score=pl.col("score") - self.penalty * better * spread).drop("_query", "_turn")
