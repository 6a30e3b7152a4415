"""One branch's own score, unchanged."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from lcm.checks import check_choice
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.ordering import best_first

_COLUMNS = ("cosine", "bm25", "dense_score", "lexical_score")


@dataclass(frozen=True, slots=True)
class RawScore:
    """score = one branch's cosine or bm25 as the index gave it, or what a stage before made of that."""

    column: Literal["cosine", "bm25", "dense_score", "lexical_score"] = "bm25"

    def __post_init__(self) -> None:
        check_choice(self, column=_COLUMNS)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(frame.with_columns(score=pl.col(self.column)))
