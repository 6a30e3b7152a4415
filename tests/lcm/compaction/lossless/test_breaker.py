"""When a breaker is open."""

from datetime import timedelta

from lcm.compaction.lossless.lossless import CircuitBreaker
from tests.lcm.compaction.contexts import NOW

MINUTE = timedelta(minutes=1)


def test_it_opens_at_the_threshold_and_closes_after_the_cooldown() -> None:
    breaker = CircuitBreaker(2, 60)
    breaker.refuse(NOW)
    breaker.succeed()
    breaker.refuse(NOW)
    assert not breaker.is_open(NOW), "success began the count anew"
    breaker.refuse(NOW)
    assert breaker.is_open(NOW)
    assert not breaker.is_open(NOW - timedelta(days=365)), "a replay of an earlier time does not wait"
    assert breaker.is_open(NOW + MINUTE - timedelta(milliseconds=1))
    assert not breaker.is_open(NOW + MINUTE)
    breaker.refuse(NOW + MINUTE)
    assert not breaker.is_open(NOW + MINUTE), "the count began anew"
