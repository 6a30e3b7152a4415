"""A stopwatch counts the seconds of the work that it is told to, and is else the part that it stands for."""

import time

import pytest

from eval.stopwatch import Stopwatch


class Part:
    dim = 3

    def search(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def fail(self) -> None:
        time.sleep(0.02)
        raise ValueError("no")

    def __len__(self) -> int:
        return 2


def test_only_the_named_work_is_timed_and_seconds_add_up() -> None:
    timed = Stopwatch(Part(), "fail")
    assert timed.search(0.01) == 0.01
    assert timed.seconds == 0
    for seconds in (0.02, 0.04):
        with pytest.raises(ValueError, match="no"):
            timed.fail()
        assert timed.seconds >= seconds
    assert (timed.dim, len(timed)) == (3, 2)
