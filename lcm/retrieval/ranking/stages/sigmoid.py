"""BM25 to a score in [0.5, 1): memory-lancedb-pro's mapping."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
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
        columns, scored = Columns(frame), scored_columns(frame, "bm25").items()
        return beside(frame, [pl.Series(score, self._mapped(columns, raw), nan_to_null=True) for raw, score in scored])

    def _mapped(self, columns: Columns, raw: str) -> Numbers:
        bm25, contained = columns.numbers(raw), columns.numbers(f"{raw.removesuffix('bm25')}contained")
        return np.where(np.isnan(bm25), contained, 1.0 / (1.0 + np.exp(-np.maximum(bm25, 0.0) / self.scale)))
