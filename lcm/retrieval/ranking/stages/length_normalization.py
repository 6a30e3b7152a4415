"""Long texts match a little of everything: take that off their score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.stages.clamp import rescored


@dataclass(frozen=True, slots=True)
class LengthNormalization:
    """score / (1 + slope log2(length / anchor)) for a text longer than the anchor, clamped to [0, 1].

    With the defaults twice the anchor leaves 2/3 of the score, four times leaves half.

    Source: memory-lancedb-pro, applyLengthNormalization.
    """

    anchor: int = 500
    """UTF-16 code units; 0 or less: nothing changes."""
    slope: float = 0.5
    spared_kinds: Sequence[str] = ()
    """Kinds of documents that keep their score."""

    def __post_init__(self) -> None:
        check_range(self, "anchor")
        check_range(self, "slope", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if self.anchor <= 0:
            return frame
        return rescored(frame, self._normalized, 0.0, self.spared_kinds)

    def _normalized(self, columns: Columns) -> Numbers:
        times_the_anchor = np.maximum(columns.numbers("length_utf16", missing=0.0) / self.anchor, 1.0)
        return columns.numbers("score") / (1.0 + self.slope * np.log2(times_the_anchor))
