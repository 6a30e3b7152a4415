"""Keep the best few."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.ordering import best_first, is_one_query, places


@dataclass(frozen=True, slots=True)
class Limit:
    """The first `n` candidates of each query."""

    n: int = 20

    def __post_init__(self) -> None:
        check_range(self, "n", ge=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        if is_one_query(ordered):
            return ordered.head(self.n)
        is_kept = places(ordered) < self.n
        return ordered if is_kept.all() else ordered.filter(pl.Series(is_kept))
