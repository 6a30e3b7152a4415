"""When a breaker is open."""

from datetime import timedelta

from lcm.compaction.lossless.breaker import CircuitBreaker
from tests.lcm.compaction.contexts import NOW

MINUTE = timedelta(minutes=1)


def test_it_opens_at_the_threshold_and_closes_after_the_cooldown() -> None:
    breaker = CircuitBreaker(2, 60)
    breaker.refuse(NOW)
    assert not breaker.is_open(NOW)
    breaker.refuse(NOW)
    assert breaker.is_open(NOW)
    assert breaker.is_open(NOW + MINUTE - timedelta(milliseconds=1))
    assert not breaker.is_open(NOW + MINUTE)
    breaker.refuse(NOW + MINUTE)
    assert not breaker.is_open(NOW + MINUTE), "the count began anew"


def test_success_begins_the_count_anew() -> None:
    breaker = CircuitBreaker(2, 60)
    for step in (breaker.refuse, lambda _: breaker.succeed(), breaker.refuse):
        step(NOW)
    assert not breaker.is_open(NOW)


def test_a_replay_of_an_earlier_time_does_not_wait() -> None:
    breaker = CircuitBreaker(1, 60)
    breaker.refuse(NOW)
    assert not breaker.is_open(NOW - timedelta(days=365))
    assert breaker.is_open(NOW)
