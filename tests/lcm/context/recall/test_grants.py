"""Grants end when they should, and hold no more than they were made with."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.context.recall.grants import Grant
from lcm.errors import GrantError
from tests.lcm.context.recall.dags import START


def grant(conversations: tuple[int, ...] = (1,), **within: Any) -> Grant:
    return Grant(conversations, lambda: START, **within)


def test_a_grant_ends_at_its_instant_or_when_it_is_revoked() -> None:
    now = [START]
    lasting = Grant((1,), lambda: now[0], ttl_seconds=10)
    now[0] += timedelta(seconds=9.999)
    assert lasting.bounds().conversations == (1,)
    now[0] = START + timedelta(seconds=10)
    revoked = grant()
    revoked.revoke()
    for ended, why in ((lasting, "Grant has expired"), (revoked, "Grant has been revoked")):
        assert ended.left == 0
        for refused in (ended.bounds, lambda ended=ended: ended.allowed([1]), lambda ended=ended: ended.take(1)):
            with pytest.raises(GrantError, match=why):
                refused()


@given(st.lists(st.integers(0, 300), max_size=10), st.integers(1, 500))
def test_no_more_is_consumed_than_there_is(takes: list[int], cap: int) -> None:
    made, left = grant(token_cap=cap), cap
    for tokens in takes:
        left = max(0, left - tokens)
        made.take(tokens)
        assert made.left == left
    if left == 0:
        with pytest.raises(GrantError, match="budget exhausted"):
            made.allowed([1])
    else:
        assert made.allowed([1]).token_cap == left


def test_a_grant_of_nothing_and_what_a_grant_does_not_cover_are_refused() -> None:
    for wrong in ({"max_depth": 0}, {"token_cap": 0}, {"ttl_seconds": 0}, {"ttl_seconds": float("nan")}):
        with pytest.raises(ValueError, match="max_depth, token_cap >= 1 and ttl_seconds > 0"):
            grant(**wrong)
    with pytest.raises(ValueError, match="at least one conversation"):
        grant(())
    made = grant((1, 2), summary_ids=("sum_a",))
    assert made.allowed([2], ["sum_a"], depth=9, token_cap=10**6) == (3, 4000)
    for refusal, asked in {
        "Conversation 3 is not in the allowed set": ([1, 3], ["sum_a"]),
        "Summary IDs not authorized: sum_b, sum_c": ([1], ["sum_a", "sum_b", "sum_c"]),
    }.items():
        with pytest.raises(GrantError, match=refusal):
            made.allowed(*asked)
