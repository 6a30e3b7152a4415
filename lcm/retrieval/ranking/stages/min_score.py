"""Drop what scores too low."""

from dataclasses import dataclass
from functools import cache

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import filtered
from lcm.retrieval.ranking.reasons import told_of


@dataclass(frozen=True, slots=True)
class MinScore:
    """Keep candidates whose score is at least `threshold`; a query may be left with none."""

    threshold: float = 0.3
    reads_unit_scores = True

    def __post_init__(self) -> None:
        check_range(self, "threshold")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return filtered(frame, _reaches(self.threshold))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how far its score is below the threshold."""
        dropped = frame.filter(~(pl.col("score") >= self.threshold).fill_null(False))
        told = pl.format("score {} below {}", pl.col("score").round(3), pl.lit(self.threshold))
        return told_of(dropped, told)


@cache
def _reaches(threshold: float) -> pl.Expr:
    return pl.col("score") >= threshold
