"""What the gate found of a candidate."""

from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from eval.comparison.changed_query import ChangedQuery
from eval.comparison.pairing import PAIRED_SCHEMA
from eval.run import Run

Gate = Literal["fine", "regressed", "cannot tell"]
EXIT_CODES: dict[Gate, int] = {"fine": 0, "regressed": 1, "cannot tell": 3}
"""2 is that of a command that could not compare at all."""

GATED_SCHEMA: dict[str, pl.DataType] = {
    **{name: kind for name, kind in PAIRED_SCHEMA.items() if name != "side"},
    "tolerance": pl.Float64(),
    "detectable": pl.Float64(),
    "gate": pl.String(),
}
"""A paired row, its limits in the measure's units, and what the gate says; all null of a measure that is told only."""


@dataclass(frozen=True, slots=True)
class GatedComparison:
    """What the gate says of a candidate beside a baseline, and the rows that it rests on."""

    baseline: Run
    candidate: Run
    rows: pl.DataFrame
    """Of `GATED_SCHEMA`, one a group and measure."""
    gate: Gate
    worse: tuple[ChangedQuery, ...]
    """Worst first."""
    better: tuple[ChangedQuery, ...]
    """Best first."""
    left_out: tuple[str, ...]
    """Measures that neither run has."""
    costs: frozenset[str]
    """The measures of which less is better."""
    unknown: tuple[str, ...]
    """Settings that may differ, for the configuration of a side does not tell them."""
    alpha: float
    confidence: float
    notes: tuple[str, ...] = ()
    """What else a reader must know: the queries that could not be paired."""

    @property
    def shows_rankings(self) -> bool:
        return any(query.baseline or query.candidate for query in (*self.worse, *self.better))

    def noting(self, note: str) -> "GatedComparison":
        """The same, with one more note."""
        return replace(self, notes=(*self.notes, note))

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.gate]
