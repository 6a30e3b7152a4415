"""Cosine to a score in (0, 1]: memory-lancedb-pro's mapping."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.columns import Columns
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.source.candidates import scored_columns


@dataclass(frozen=True, slots=True)
class InverseDistance:
    """dense_score = 1 / (1 + d) with d = 1 - cosine: 1 at cosine 1, 1/2 at 0, 1/3 at -1.

    So has NAME_score every other branch that gives cosines.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        columns, scored = Columns(frame), scored_columns(frame, "cosine").items()
        return beside(
            frame, [pl.Series(score, 1 / (1 + (1 - columns.numbers(raw))), nan_to_null=True) for raw, score in scored]
        )
