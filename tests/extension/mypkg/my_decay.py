"""A decay of one's own: what is no longer fresh counts for half."""

from dataclasses import dataclass

import numpy as np

from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Columns, Numbers


@dataclass(frozen=True, slots=True)
class MyDecay:
    """multiplier = strength = 1 for documents of at most `fresh_days` days, else 1/2."""

    fresh_days: float = 30
    contract = Contract(reads=("created_at",))

    def __post_init__(self) -> None:
        if self.fresh_days < 0:
            raise ValueError(f"fresh_days must be >= 0, got {self.fresh_days}")

    def multiplier(self, columns: Columns) -> Numbers:
        return np.where(columns.days_since("created_at") > self.fresh_days, 0.5, 1.0)

    def strength(self, columns: Columns) -> Numbers:
        return self.multiplier(columns)
