"""How a budget is shared out: worked cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.context.assembly.budget_shares import (
    AuthoredCosts,
    BudgetShares,
    OversizedHardError,
    first_fit,
    longest_prefix,
)
from lcm.records.rules import VersionedRules

TURNS = [Turn(10, "user")] * 20
WHOLE = RecentTail(min_turns=1, budget_fraction=1.0)
NOTHING = AuthoredCosts([], [])


def test_claims_come_in_order() -> None:
    soft = AuthoredCosts([20, 20], [20, 20])
    shares = BudgetShares().share(
        100, [25], soft, TURNS, RecentTail(min_turns=2, budget_tokens=35, budget_fraction=None)
    )
    assert (shares.hard_tokens, shares.base_tokens, shares.soft) == (25, 20, 1)  # .3 * 100 = 30 < 40
    assert shares.tail_tokens == 30  # 35 are aimed at, a turn takes 10
    assert shares.left_tokens == 100 - 25 - 20 - 30
    assert shares.degraded == ()


def test_the_fraction_of_a_tail_wins_over_its_tokens() -> None:
    tail = RecentTail(min_turns=1, budget_tokens=128, budget_fraction=0.5)
    assert BudgetShares().share(100, [], NOTHING, TURNS, tail).tail_tokens == 50


@pytest.mark.parametrize(("rules", "before", "after"), [("corrected", 60, 70), ("original", 90, 70)])
def test_a_soft_block_that_comes_to_fit_takes_turns_away_only_in_the_original(
    rules: VersionedRules, before: int, after: int
) -> None:
    soft = AuthoredCosts([30], [30])
    shares = BudgetShares()
    assert shares.share(99, [], soft, TURNS, WHOLE, rules).tail_tokens == before  # 99 - .3 * 99 = 69.3, or 99
    assert shares.share(100, [], soft, TURNS, WHOLE, rules).tail_tokens == after  # 100 - 30


def test_hard_text_has_a_share_of_its_own_where_one_is_set() -> None:
    with pytest.raises(OversizedHardError, match="takes 41 tokens as it is shown, more than the 40 that it may"):
        BudgetShares(hard_fraction=0.4).share(100, [41], NOTHING, TURNS, WHOLE)
    degraded = BudgetShares(hard_fraction=0.4).share(100, [41], NOTHING, TURNS, WHOLE, "original")
    assert degraded.degraded == ("hard authored text takes 41 tokens of 40",)
    assert (degraded.tail_tokens, degraded.soft, degraded.left_tokens) == (10, 0, 0)


COSTS = st.lists(st.integers(0, 30), max_size=12)


def test_a_prefix_ends_at_the_first_item_that_does_not_fit() -> None:
    assert longest_prefix([3, 4, 9, 1], 8) == 2
    assert longest_prefix([3, 4, 9, 1], 7) == 2  # equality fits
    assert longest_prefix([0, 0, 1], 0) == 2


def test_first_fit_passes_over_it() -> None:
    assert first_fit([3, 4, 9, 1], 8) == [0, 1, 3]


@given(costs=COSTS, budget=st.integers(-5, 120))
def test_neither_goes_over_the_budget_and_first_fit_holds_the_prefix(costs: list[int], budget: int) -> None:
    prefix, fitting = longest_prefix(costs, budget), first_fit(costs, budget)
    assert sum(costs[:prefix]) <= max(0, budget)
    assert sum(costs[place] for place in fitting) <= max(0, budget)
    assert fitting[:prefix] == list(range(prefix))
