"""BM25 to a score in [0.5, 1): memory-lancedb-pro's mapping."""

from dataclasses import dataclass
from functools import cache

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import beside, worked_out
from lcm.retrieval.source.candidates import scored_columns


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """lexical_score = 1 / (1 + exp(-bm25 / scale)) for a positive BM25, else 0.5.

    A document found by substring alone keeps the score of that. So has NAME_score every other branch that gives BM25.
    """

    scale: float = 5.0

    def __post_init__(self) -> None:
        check_range(self, "scale", gt=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        scored = scored_columns(frame, "bm25").items()
        return beside(frame, [worked_out(frame, _mapped(raw, self.scale), score) for raw, score in scored])


@cache
def _mapped(raw: str, scale: float) -> pl.Expr:
    bm25 = pl.col(raw)
    mapped = pl.when(bm25 > 0).then(1.0 / (1.0 + (-bm25 / scale).exp())).otherwise(0.5)
    return pl.when(bm25.is_not_null()).then(mapped).otherwise(pl.col(f"{raw.removesuffix('bm25')}contained"))
