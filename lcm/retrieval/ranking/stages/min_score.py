"""Drop what scores too low."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import kept_rows, told_of


@dataclass(frozen=True, slots=True)
class MinScore:
    """Keep candidates whose score is at least `threshold`; a query may be left with none."""

    threshold: float = 0.3
    reads_unit_scores = True

    def __post_init__(self) -> None:
        check_range(self, "threshold")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return kept_rows(frame, ~(Columns(frame).numbers("score", missing=-np.inf) < self.threshold))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how far its score is below the threshold."""
        dropped = frame.filter(~(pl.col("score") >= self.threshold).fill_null(False))
        told = pl.format("score {} below {}", pl.col("score").round(3), pl.lit(self.threshold))
        return told_of(dropped, told)
