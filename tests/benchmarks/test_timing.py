"""The protocol of timing: turns, warming up, agreement, and what the figures are made of."""

from collections.abc import Callable

import pytest

from benchmarks import timing
from benchmarks.timing import RoundTimes, Target, compared_rates, compared_times, take_turns

pytestmark = pytest.mark.usefixtures("no_full_collections")


class Clock:
    """Stands still, but for the work that is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


def side(clock: Clock, log: list[str], name: str, seconds: list[float]) -> Callable[[], Callable[[], str]]:
    """A side whose preparation takes long and whose rounds take so many seconds each."""
    rounds = iter(seconds)

    def prepare() -> Callable[[], str]:
        clock.now += 100

        def work() -> str:
            clock.now += next(rounds)
            log.append(name)
            return name

        return work

    return prepare


def test_the_sides_take_turns_after_a_round_that_warms_up_and_preparing_is_not_timed(clock: Clock) -> None:
    log: list[str] = []
    ours, bare = side(clock, log, "ours", [9, 1, 2, 3]), side(clock, log, "bare", [9, 4, 5, 6])
    checked: list[tuple[str, str]] = []
    rounds = take_turns(ours, bare, lambda mine, theirs: checked.append((mine, theirs)), 3)
    assert rounds == RoundTimes((1, 2, 3), (4, 5, 6))
    assert log == ["ours", "bare", "bare", "ours", "ours", "bare", "bare", "ours"]
    assert checked == [("ours", "bare")] * 4


def test_rates_and_times_are_medians_and_the_ratio_is_ours_by_bare() -> None:
    rounds = RoundTimes((2, 4, 5), (1, 2, 10))
    rates = compared_rates("x", "messages/s", 100, rounds, Target("at least", 0.5))
    assert (rates.ours, rates.bare, rates.ratio) == (100 / 4, 100 / 2, 1 / 2)
    assert (rates.ratio_low, rates.ratio_high, rates.is_met) == (1 / 2, 10 / 5, True)
    times = compared_times("x", "ms", 1000, rounds, Target("at most", 1.2))
    assert (times.ours, times.bare, times.ratio) == (4000, 2000, 2)
    assert (times.ratio_low, times.ratio_high, times.is_met) == (5 / 10, 2 / 1, False)
    assert compared_times("x", "s", 1, rounds, None).is_met is None
    for bound, met, missed in (("at least", 0.5, 0.49), ("at most", 1.2, 1.21)):
        target = Target(bound, met)
        assert (target.is_met(met), target.is_met(missed)) == (True, False)


def test_a_point_of_a_curve_is_the_median_of_the_rounds_that_two_seconds_allow(clock: Clock) -> None:
    log: list[str] = []
    assert timing.median_seconds(side(clock, log, "a", [0.125, 0.5, 0.25]), 3) == 0.25
    assert timing.median_seconds(side(clock, log, "b", [1.5, 1.0]), 5) == 1.25
    assert log == ["a"] * 3 + ["b"] * 2
