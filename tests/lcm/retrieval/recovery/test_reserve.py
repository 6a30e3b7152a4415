"""How much is kept for what was recovered."""

import math

from lcm.protocols.retrieval import Signals
from lcm.retrieval.recovery.fetch import Reserve
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.recovery.turns import overlay

FAILED = Signals(False, False, True, False)
FINE = Signals(True, False, False, False)
COMPARISON = "Which did I do earlier, the ceramics workshop or the sailing course?"


def test_it_is_a_tenth_of_the_budget_within_bounds_and_four_fifths_more_for_a_comparison() -> None:
    budgets = {500: (50, 90), 100: (16, 29), 20: (16, 20), 10: (10, 10), 5000: (128, 231)}  # ceil(1.8 * 128)
    found = {one: tuple(Reserve().tokens(one, is_comparison=is_one) for is_one in (False, True)) for one in budgets}
    assert found == budgets
    assert Reserve(comparison_factor=1.0).tokens(5000, is_comparison=True) == 128


def test_only_a_failed_answer_has_one() -> None:
    assert overlay().reserve_tokens("who is it?", FINE, 500) == 0
    assert overlay().reserve_tokens("who is it?", FAILED, 500) == 50
    assert overlay().reserve_tokens("who is it?", Signals(False, False, False, True), 500) == 50
    assert overlay().reserve_tokens(COMPARISON, FAILED, 500) == 90  # ceil(1.8 * 50)


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(Reserve, "be in [0, 1]", fraction=1.1)
    assert_refused(Reserve, "be in [0, most_tokens = 128]", least_tokens=200)
    assert_refused(Reserve, "be >= 1", comparison_factor=math.nan)
