"""The one way to time: two sides take turns in one process, are warm, and must give the same answer."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeVar

_Ours = TypeVar("_Ours")
_Bare = TypeVar("_Bare")
_Answer = TypeVar("_Answer")

Prepare = Callable[[], Callable[[], _Answer]]
"""Gets ready, which is not timed, and gives the work, which is."""

_ENOUGH_S = 2.0


class DisagreementError(RuntimeError):
    """The two sides of a comparison gave different answers, so their times say nothing."""


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """Seconds of each timed round, for both sides of a comparison in the same order."""

    ours: tuple[float, ...]
    bare: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """The bound that the ratio of a comparison should keep."""

    bound: Literal["at least", "at most"]
    limit: float

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.limit if self.bound == "at least" else ratio <= self.limit


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours beside the raw library: medians over the rounds, in `unit`."""

    name: str
    unit: str
    ours: float
    bare: float
    ratio: float
    """ours / bare."""
    ratio_low: float
    """Of a single round; so is `ratio_high`."""
    ratio_high: float
    target: Target | None
    """None where the ratio is only reported."""
    rounds: RoundTimes
    facts: Mapping[str, float] = field(default_factory=dict)
    """What else was found out about the two."""

    @property
    def is_met(self) -> bool | None:
        return None if self.target is None else self.target.is_met(self.ratio)


def take_turns(
    ours: Prepare[_Ours], bare: Prepare[_Bare], check: Callable[[_Ours, _Bare], None], repeats: int
) -> RoundTimes:
    """Time both sides `repeats` times, in turns, the first one changing; one round before them warms up.

    Args:
        ours: prepares our side.
        bare: prepares the other.
        check: raises DisagreementError where the two answers of a round differ; not timed.
        repeats: at least 1.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    with _quiet_collector():
        for number in range(repeats + 1):
            if number % 2:
                bare_s, theirs = _timed(bare)
                ours_s, mine = _timed(ours)
            else:
                ours_s, mine = _timed(ours)
                bare_s, theirs = _timed(bare)
            check(mine, theirs)
            if number:
                seconds[0].append(ours_s)
                seconds[1].append(bare_s)
    return RoundTimes(tuple(seconds[0]), tuple(seconds[1]))


def median_seconds(prepare: Prepare[object], repeats: int) -> float:
    """Time one side `repeats` times, or until two seconds have gone; it is warmed by the caller."""
    seconds: list[float] = []
    with _quiet_collector():
        while len(seconds) < repeats and sum(seconds) < _ENOUGH_S:
            seconds.append(_timed(prepare)[0])
    return statistics.median(seconds)


def compared_rates(
    name: str, unit: str, work: int, rounds: RoundTimes, target: Target | None, facts: Mapping[str, float] | None = None
) -> Comparison:
    """Compare how much of `work` each side does a second."""
    rates = RoundTimes(tuple(work / s for s in rounds.ours), tuple(work / s for s in rounds.bare))
    return _compared(name, unit, rates, rounds, target, facts or {})


def compared_times(
    name: str,
    unit: str,
    scale: float,
    rounds: RoundTimes,
    target: Target | None,
    facts: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare how long each side takes; `scale` makes of a round's seconds the unit."""
    times = RoundTimes(tuple(scale * s for s in rounds.ours), tuple(scale * s for s in rounds.bare))
    return _compared(name, unit, times, rounds, target, facts or {})


def _compared(
    name: str, unit: str, values: RoundTimes, rounds: RoundTimes, target: Target | None, facts: Mapping[str, float]
) -> Comparison:
    ours, bare = statistics.median(values.ours), statistics.median(values.bare)
    ratios: Sequence[float] = [mine / theirs for mine, theirs in zip(values.ours, values.bare, strict=True)]
    return Comparison(name, unit, ours, bare, ours / bare, min(ratios), max(ratios), target, rounds, facts)


def _timed(prepare: Prepare[_Answer]) -> tuple[float, _Answer]:
    work = prepare()
    gc.collect()
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """What is there already is the harness's: the garbage collector need not walk it in every round."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
