"""A weighted sum of named columns: a linear model whose weights are plain numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import numbers_of
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.ranking.evidence.text_evidence import FormEvidence, SpeakerEvidence, TimeEvidence, WordEvidence
from lcm.retrieval.ranking.evidence.vector_evidence import FurtherVectorEvidence, VectorEvidence, WordLikeness
from lcm.retrieval.ranking.ordering import best_first

EVIDENCE_COLUMNS = frozenset().union(
    *(stage.makes for stage in (FormEvidence, SpeakerEvidence, TimeEvidence, WordEvidence)),
    *(stage.makes for stage in (FurtherVectorEvidence, VectorEvidence, WordLikeness)),
)
"""What stages of evidence make."""


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
        named = set(frame.columns)  # each is asked for its type: of a whole schema a live query waits longer
        columns = {name: frame[name] for name in self.weights if name in named}
        found = {name: column for name, column in columns.items() if column.dtype.is_numeric()}
        for column in self.weights:
            if column not in found and (column not in EVIDENCE_COLUMNS or not found):
                raise ValueError(
                    f"weights.{column} names no column of numbers that a stage before makes; choose from: "
                    + ", ".join(sorted(name for name, dtype in frame.schema.items() if dtype.is_numeric()))
                )
        score = np.zeros(len(frame))  # in numpy: a plan of so many columns takes longer than their sum
        for name, held in found.items():
            values = numbers_of(held)
            if (is_missing := np.isnan(values)).any():
                values = np.where(is_missing, 0.0, values)
            score += values * self.weights[name]
        return best_first(beside(frame, [pl.Series("score", score)]))
