"""A weighted sum of named columns: a linear model whose weights are plain numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import beside
from lcm.retrieval.ranking.evidence.evidence_columns import EVIDENCE_COLUMNS
from lcm.retrieval.ranking.ordering import best_first

_AT_ONCE = 1 << 13
"""Rows whose columns are summed at once."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """score = the sum over columns of weight times value; a missing value counts 0, and so does evidence that no stage
    before has made (`EVIDENCE_COLUMNS`), so that weights learnt in one ranking stand in another.

    Columns should come on one scale, as standard scores and shares do: nothing is scaled here.

    Source: ours; `docs/unified.md` says how the weights of `fusion=unified` were learnt.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: {"dense_score": 1.0, "lexical_score": 0.5})
    """Column -> weight."""
    gives_unit_scores = False

    def __post_init__(self) -> None:
        if not self.weights:
            raise ValueError("weights must name at least one column, got none")
        check_range(self, "weights")

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(self.weights)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        schema = frame.schema  # asked for once: a live query is a few rows
        found = {column for column in self.weights if column in schema and schema[column].is_numeric()}
        for column in self.weights:
            if column not in found and (column not in EVIDENCE_COLUMNS or not found):
                raise ValueError(
                    f"weights.{column} names no column of numbers that a stage before makes; choose from: "
                    + ", ".join(sorted(name for name, dtype in schema.items() if dtype.is_numeric()))
                )
        weights = {column: weight for column, weight in self.weights.items() if column in found}
        parts = [_sums(part, list(weights.values())) for part in frame[list(weights)].iter_slices(_AT_ONCE)]
        return best_first(beside(frame, [pl.Series("score", np.concatenate([np.empty(0), *parts]))]))


def _sums(columns: pl.DataFrame, weights: list[float]) -> npt.NDArray[np.float64]:
    """The weighed sum of each row, added up column by column; in numpy, for a plan of so many takes longer."""
    values = columns.to_numpy().astype(np.float64, copy=False).T
    products = np.where(np.isnan(values), 0.0, values) * np.array(weights)[:, np.newaxis]
    sums: npt.NDArray[np.float64] = np.add.accumulate(np.concatenate([np.zeros((1, len(columns))), products]))[-1]
    return sums
