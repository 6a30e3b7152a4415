"""Keep the best few."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import told_of
from lcm.retrieval.ranking.ordering import best, best_first, with_rank


@dataclass(frozen=True, slots=True)
class Limit:
    """The first `n` candidates of each query."""

    n: int = 20
    reads = ()

    def __post_init__(self) -> None:
        check_range(self, "n", ge=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best(frame, self.n)

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how many are let through."""
        dropped = with_rank(best_first(frame)).filter(pl.col("rank") > self.n)
        return told_of(dropped, pl.lit(f"the first {self.n} are let through"))
