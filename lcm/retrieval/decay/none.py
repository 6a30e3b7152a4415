"""No decay."""

from dataclasses import dataclass

import numpy as np

from lcm.protocols.columns import Columns, Numbers


@dataclass(frozen=True, slots=True)
class NoDecay:
    """A document is as alive after years as on its first day."""

    is_off = True
    reads = ()

    def multiplier(self, columns: Columns) -> Numbers:
        return np.ones(len(columns))

    def strength(self, columns: Columns) -> Numbers:
        return np.ones(len(columns))
