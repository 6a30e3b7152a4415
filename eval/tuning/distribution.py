"""Distributions: the values that one key of a configuration may take in a study."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lcm.checks import check_range

if TYPE_CHECKING:
    from optuna.trial import Trial

RANGE = ("low", "high", "log", "step")


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers between two bounds, bounds included, for one key; whole where both bounds are written so."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        check_range(self, "low", "high")
        check_range(self, "step", or_null=True)
        if not isinstance(self.log, bool):
            raise ValueError(f"log must be true or false, got {self.log!r}")
        if not self.low < self.high:
            raise ValueError(f"low must be < high, got {self.low} and {self.high}")
        if self.log and not self.low > 0:
            raise ValueError(f"low must be > 0 where log is true, got {self.low}")
        if self.step is None:
            return
        if self.log:
            raise ValueError(f"step={self.step} has no meaning where log is true: leave one out")
        check_range(self, "step", gt=0)
        if self.is_whole and not isinstance(self.step, int):
            raise ValueError(f"step must be a whole number as low and high are, got {self.step}")
        steps = (self.high - self.low) / self.step
        if not math.isclose(steps, round(steps), abs_tol=1e-9):
            raise ValueError(f"high must be low plus a number of steps of {self.step}, got {self.low} and {self.high}")

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def extremes(self) -> tuple[Any, ...]:
        """The values at which a component that refuses some would refuse them."""
        return (self.low, self.high)

    def holds(self, value: Any) -> bool:
        """Whether a trial could have this value."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high or (self.is_whole and not isinstance(value, int)):
            return False
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return math.isclose(steps, round(steps), abs_tol=1e-9)

    def suggested(self, key: str, trial: "Trial") -> Any:
        if self.is_whole:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(key, int(self.low), int(self.high), log=self.log, step=step)
        return trial.suggest_float(key, self.low, self.high, log=self.log, step=self.step)


@dataclass(frozen=True, slots=True)
class Choices:
    """Values that are named one by one: of a setting, or the choices of a group; one alone is held in every trial."""

    values: Sequence[str | float | bool | None]

    def __post_init__(self) -> None:
        if not isinstance(self.values, Sequence) or isinstance(self.values, str) or not self.values:
            raise ValueError(f"choices must be a list of one or more, got {self.values!r}")
        for value in self.values:
            if not (value is None or isinstance(value, (str, int, float))) or value != value:
                raise ValueError(f"choices must be text, numbers, true, false or null, got {value!r}")
        told = [(type(value), value) for value in self.values]
        if len(set(told)) < len(told):
            raise ValueError(f"choices must differ from each other, got {list(self.values)!r}")

    def extremes(self) -> tuple[Any, ...]:
        return tuple(self.values)

    def holds(self, value: Any) -> bool:
        return any(type(value) is type(known) and value == known for known in self.values)

    def suggested(self, key: str, trial: "Trial") -> Any:
        return trial.suggest_categorical(key, list(self.values))


Distribution = Range | Choices


def distribution(settings: Mapping[str, Any]) -> Distribution:
    """Read what a space says of a key.

    Raises:
        ValueError: if it is neither a range nor choices.
    """
    names = set(settings)
    if names == {"choices"}:
        return Choices(settings["choices"])
    if {"low", "high"} <= names <= set(RANGE):
        return Range(**settings)
    raise ValueError(f"needs low and high (and log or step), or choices, got {', '.join(sorted(names)) or 'nothing'}")
