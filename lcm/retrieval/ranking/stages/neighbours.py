"""What stands beside a good answer is part of it: turns lend their neighbours some of their score."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch

_PLACE = ("conversation_id", "session_id", "seq")


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Add to dense_score and lexical_score a share of those of the document just before and just after.

    Neighbours are candidates of the same query whose first messages follow each other in one session. One that is
    not a candidate lends nothing, so pools should be as large as the haystack. Documents of one message stand in the
    order of their ids: the first has the message before beside it, the last the one behind.

    Source: ours.
    """

    dense_weight: float = 0.3
    lexical_weight: float = 0.3
    makes = ("dense_score", "lexical_score")

    def __post_init__(self) -> None:
        check_range(self, "dense_weight", "lexical_weight", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        in_place = frame.with_row_index("_row").sort(pl.col("query_id").rle_id(), *_PLACE, "document_id")
        lent = in_place.with_columns(
            dense_score=pl.col("dense_score") + self.dense_weight * _lent("dense_score"),
            lexical_score=pl.col("lexical_score") + self.lexical_weight * _lent("lexical_score"),
        )
        return lent.sort("_row").drop("_row")


def _lent(column: str) -> pl.Expr:
    """The sum of the column's values at seq - 1 and seq + 1 of the same query and session, 0 where there is none."""
    place = (pl.col("query_id"), pl.col("conversation_id"), pl.col("session_id"))

    def from_row(distance: int) -> pl.Expr:
        same = pl.all_horizontal(
            *(key.eq_missing(key.shift(distance)) for key in place),
            pl.col("seq") - pl.col("seq").shift(distance) == distance,
        )
        return pl.when(same).then(pl.col(column).shift(distance)).otherwise(0.0).fill_null(0.0)

    return from_row(1) + from_row(-1)
