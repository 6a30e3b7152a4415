"""Cosine to a score in (0, 1]: memory-lancedb-pro's mapping."""

from dataclasses import dataclass
from functools import cache

import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import beside, worked_out
from lcm.retrieval.source.candidates import scored_columns


@dataclass(frozen=True, slots=True)
class InverseDistance:
    """dense_score = 1 / (1 + d) with d = 1 - cosine: 1 at cosine 1, 1/2 at 0, 1/3 at -1.

    So has NAME_score every other branch that gives cosines.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        scored = scored_columns(frame, "cosine").items()
        return beside(frame, [worked_out(frame, _mapped(raw), score) for raw, score in scored])


@cache
def _mapped(raw: str) -> pl.Expr:
    return 1.0 / (1.0 + (1.0 - pl.col(raw)))
