"""What stands beside something better counts less: the best of a turn, or of a session, tells most of it."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from lcm.checks import check_choice, check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.reasons import told_of
from lcm.retrieval.ranking.turns import turn_of


@dataclass(frozen=True, slots=True)
class Crowding:
    """score - penalty * n * the standard deviation of the query's scores, where n documents of one place are better.

    A place is a turn, whose passages are the documents that one message or step was cut into; or a session, so that
    what was told on several occasions is found on more of them. Of equal ones the earlier row is the better. Nothing
    changes where every document is a turn of its own, or stands in no session; nor does the order within one place.

    Source: ours; after the diminishing returns of maximal marginal relevance (Carbonell and Goldstein 1998).
    """

    penalty: float = 1.0
    """In standard deviations; 0: none."""
    within: Literal["turn", "session"] = "turn"
    """The place whose documents count together."""

    def __post_init__(self) -> None:
        check_range(self, "penalty", ge=0)
        check_choice(self, within=Literal["turn", "session"])

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what stands beside something better, by how much its score falls."""
        cost = (frame["score"] - self(frame, batch)["score"]).round(3)
        told = pl.format(f"loses {{}} to better documents of the same {self.within}", "cost")
        return told_of(frame.with_columns(cost=cost).filter(pl.col("cost") > 0), told)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        rows = frame.with_columns(_query=pl.col("query_id").rle_id())
        place = ["_query", "conversation_id", "session_id"]
        if self.within == "turn":
            rows, place = rows.with_columns(_turn=turn_of(frame, "query_id")), ["_query", "_turn"]
        better = (pl.col("score").rank("ordinal", descending=True) - 1).over(place).fill_null(0)
        is_placed = pl.all_horizontal(pl.col(place).is_not_null())
        finite = pl.when(pl.col("score").is_finite()).then("score")
        spread = finite.std(ddof=0).over("_query").fill_null(0.0)
        cost = self.penalty * pl.when(is_placed).then(better).otherwise(0) * spread
        return rows.with_columns(score=pl.col("score") - cost).drop("_query", "_turn", strict=False)
