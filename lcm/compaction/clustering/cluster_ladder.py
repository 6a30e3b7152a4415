"""How often, and how tightly, a cluster's summary is asked for."""

from dataclasses import dataclass

from lcm.checks import check_range


@dataclass(frozen=True, slots=True)
class Rung:
    """One attempt at a cluster's summary: how long, and how dense."""

    target_tokens: int
    density: float
    """The share of the turns that a selection keeps."""

    def __post_init__(self) -> None:
        check_range(self, "target_tokens", ge=1)
        check_range(self, "density", gt=0, le=1)


@dataclass(frozen=True, slots=True)
class Ladder:
    """The attempts at a cluster's summary: a first; a tighter one where the first gave no less than its turns; and a
    last one that takes the turns' own words, where those before it did not.

    Source: libravdb memory 1.4.4.
    """

    first: Rung = Rung(64, 0.4)
    tighter: Rung = Rung(32, 0.25)
    last: Rung = Rung(16, 0.25)
