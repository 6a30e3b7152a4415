"""Grants end when they should, and hold no more than they were made with."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.context.recall.grants import Grants
from lcm.errors import GrantError
from tests.lcm.context.recall.dags import START


def test_a_grant_ends_at_its_instant_and_is_swept_when_another_is_made() -> None:
    grants = Grants()
    grant, revoked = (grants.create([1], START, ttl_seconds=10) for _ in range(2))
    assert grants.active(grant.grant_id, START + timedelta(seconds=9.999)) == grant
    with pytest.raises(GrantError, match="Grant has expired"):
        grants.active(grant.grant_id, START + timedelta(seconds=10))
    grants.revoke(revoked.grant_id)
    assert len(grants) == 2
    later = START + timedelta(seconds=11)
    alive = grants.create([1], later)
    assert len(grants) == 1
    assert grants.remaining(alive.grant_id, later) == alive.token_cap
    assert not grants.revoke(revoked.grant_id)


@given(st.lists(st.integers(0, 300), max_size=10), st.integers(1, 500))
def test_no_more_is_consumed_than_there_is(takes: list[int], cap: int) -> None:
    grants = Grants()
    grant = grants.create([1], START, token_cap=cap)
    left = cap
    for tokens in takes:
        left = max(0, left - tokens)
        assert grants.consume(grant.grant_id, tokens, START) == left
    if left == 0:
        with pytest.raises(GrantError, match="budget exhausted"):
            grants.authorize(grant.grant_id, 1, [], START)
    else:
        assert grants.authorize(grant.grant_id, 1, [], START).token_cap == left


def test_a_grant_is_lent_on_one_step_less_deep_with_what_is_left_and_no_longer() -> None:
    grants = Grants()
    parent = grants.create([1], START, summary_ids=["sum_a"], max_depth=2, token_cap=100, ttl_seconds=10)
    grants.consume(parent.grant_id, 60, START)
    child = grants.inherit(parent.grant_id, 4000, START, ttl_seconds=300)
    assert (child.conversations, child.summary_ids, child.max_depth, child.token_cap) == ((1,), ("sum_a",), 1, 40)
    assert child.expires_at == parent.expires_at
    with pytest.raises(GrantError, match="deep enough"):
        grants.inherit(child.grant_id, 4000, START)


def test_a_grant_of_nothing_and_what_a_grant_does_not_cover_are_refused() -> None:
    for wrong in ({"max_depth": 0}, {"token_cap": 0}, {"ttl_seconds": 0}, {"ttl_seconds": float("nan")}):
        with pytest.raises(ValueError, match="max_depth, token_cap >= 1 and ttl_seconds > 0"):
            Grants().create([1], START, **wrong)
    with pytest.raises(ValueError, match="at least one conversation"):
        Grants().create([], START)
    grants = Grants()
    grant = grants.create([1, 2], START, summary_ids=["sum_a"]).grant_id
    assert grants.authorize(grant, 2, ["sum_a"], START, depth=9, token_cap=10**6) == (3, 4000)
    for refusal, asked in {
        "Conversation 3 is not in the allowed set": (grant, 3, ["sum_a"]),
        "Summary IDs not authorized: sum_b, sum_c": (grant, 1, ["sum_a", "sum_b", "sum_c"]),
        "Grant not found": ("grant_of_nobody", 1, []),
    }.items():
        with pytest.raises(GrantError, match=refusal):
            grants.authorize(*asked, START)
