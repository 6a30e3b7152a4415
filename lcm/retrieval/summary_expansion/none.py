"""Summaries that were found stay closed."""

from dataclasses import dataclass

import polars as pl

from lcm.protocols.retrieval import Batch


@dataclass(frozen=True, slots=True)
class NoSummaryExpansion:
    """Nothing is added."""

    is_off = True

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame
