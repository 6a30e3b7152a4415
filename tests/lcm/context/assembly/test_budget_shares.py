"""How a budget is shared out: worked cases."""

import pytest

from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.context.assembly.parts import BudgetShares, OversizedHardError, Price

TURNS = [Turn(10, "user")] * 20
WHOLE = RecentTail(min_turns=1, budget_fraction=1.0)
NOTHING: list[Price] = []


def test_claims_come_in_order() -> None:
    tail = RecentTail(min_turns=2, budget_tokens=35, budget_fraction=None)
    shares = BudgetShares().share(100, [25], [Price(20, 20)] * 2, TURNS, tail)
    assert (shares.hard_tokens, shares.base_tokens, shares.soft) == (25, 20, 1)  # .3 * 100 = 30 < 40
    assert shares.tail_tokens == 30  # 35 are aimed at, a turn takes 10
    assert shares.left_tokens == 100 - 25 - 20 - 30
    assert shares.degraded == ()
    half = RecentTail(min_turns=1, budget_tokens=128, budget_fraction=0.5)
    assert BudgetShares().share(100, [], NOTHING, TURNS, half).tail_tokens == 50, "the fraction wins over the tokens"


@pytest.mark.parametrize(("rules", "before", "after"), [("corrected", 60, 70), ("original", 90, 70)])
def test_a_soft_block_that_comes_to_fit_takes_turns_away_only_in_the_original(rules, before, after):
    soft, shares = [Price(30, 30)], BudgetShares()
    assert shares.share(99, [], soft, TURNS, WHOLE, rules).tail_tokens == before  # 99 - .3 * 99 = 69.3, or 99
    assert shares.share(100, [], soft, TURNS, WHOLE, rules).tail_tokens == after  # 100 - 30


def test_hard_text_has_a_share_of_its_own_where_one_is_set() -> None:
    with pytest.raises(OversizedHardError, match="takes 41 tokens as it is shown, more than the 40 that it may"):
        BudgetShares(hard_fraction=0.4).share(100, [41], NOTHING, TURNS, WHOLE)
    degraded = BudgetShares(hard_fraction=0.4).share(100, [41], NOTHING, TURNS, WHOLE, "original")
    assert degraded.degraded == ("hard authored text takes 41 tokens of 40",)
    assert (degraded.tail_tokens, degraded.soft, degraded.left_tokens) == (10, 0, 0)
