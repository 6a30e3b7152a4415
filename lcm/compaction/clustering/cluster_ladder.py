"""How often, and how tightly, a cluster's summary is asked for."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rung:
    """One attempt."""

    target_tokens: int
    density: float
    """The share of the turns that a selection keeps."""

    def __post_init__(self) -> None:
        if not 1 <= self.target_tokens < math.inf:
            raise ValueError(f"target_tokens must be >= 1, got {self.target_tokens}")
        if not 0 < self.density <= 1:
            raise ValueError(f"density must be > 0 and <= 1, got {self.density}")


@dataclass(frozen=True, slots=True)
class Ladder:
    """The first attempt; a tighter one where the first gave no less than its turns; and a last one that takes the
    turns' own words, where those before it did not.

    Source: libravdb memory 1.4.4.
    """

    first: Rung = Rung(64, 0.4)
    tighter: Rung = Rung(32, 0.25)
    last: Rung = Rung(16, 0.25)
