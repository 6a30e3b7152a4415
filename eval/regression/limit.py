"""How much worse is too much, for one measure."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")
_KEYS = {"tolerance", "detectable"}


@dataclass(frozen=True, slots=True)
class Limit:
    """Losses up to `tolerance` are accepted; one of `detectable` must not pass unseen.

    Each is a number in the measure's own units, or a share of the baseline's mean such as `10%`.
    """

    tolerance: float | str
    detectable: float | str

    def __post_init__(self) -> None:
        for name in ("tolerance", "detectable"):
            value = getattr(self, name)
            is_share = isinstance(value, str) and _SHARE.fullmatch(value)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_share and not (is_number and 0 <= value < math.inf):
                raise ValueError(f"{name} must be a number >= 0 or a share such as 10%, got {value!r}")
        if isinstance(self.tolerance, str) != isinstance(self.detectable, str):
            raise ValueError(
                f"tolerance and detectable must be of one kind, got {self.tolerance} and {self.detectable}"
            )
        if not self.in_units(1.0)[0] < self.in_units(1.0)[1]:
            raise ValueError(f"detectable must be > tolerance, got {self.detectable} and {self.tolerance}")

    def in_units(self, mean: float) -> tuple[float, float]:
        """Tolerance and detectable in the measure's units, where the baseline's mean is this."""
        return _in_units(self.tolerance, mean), _in_units(self.detectable, mean)


def limit_of(measure: str, settings: Mapping[str, float | str]) -> Limit:
    """The limit that a configuration gives to a measure.

    Raises:
        ValueError: naming the measure and what is wrong.
    """
    if not isinstance(settings, Mapping) or set(settings) != _KEYS:
        got = ", ".join(map(str, settings)) or "nothing" if isinstance(settings, Mapping) else repr(settings)
        raise ValueError(f"measures.{measure} must have tolerance and detectable, got {got}")
    try:
        return Limit(**settings)
    except ValueError as error:
        raise ValueError(f"measures.{measure}.{error}") from None  # the deepest cause is what a user is told


def _in_units(value: float | str, mean: float) -> float:
    if isinstance(value, str):
        return float(value.removesuffix("%")) / 100 * abs(mean)
    return value
