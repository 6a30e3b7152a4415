"""How much is kept for what was recovered."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.protocols.retrieval import Signals
from lcm.retrieval.recovery.reserve import Reserve
from tests.lcm.retrieval.recovery.turns import overlay

FAILED = Signals(False, False, True, False)
FINE = Signals(True, False, False, False)
COMPARISON = "Which did I do earlier, the ceramics workshop or the sailing course?"


def test_it_is_a_tenth_of_the_budget_within_bounds() -> None:
    reserve = Reserve()
    assert reserve.tokens(500, is_comparison=False) == 50  # floor(0.1 * 500)
    assert reserve.tokens(100, is_comparison=False) == 16
    assert reserve.tokens(10, is_comparison=False) == 10
    assert reserve.tokens(5000, is_comparison=False) == 128


def test_a_comparison_gets_four_fifths_more_as_far_as_the_budget_goes() -> None:
    reserve = Reserve()
    assert reserve.tokens(5000, is_comparison=True) == 231  # ceil(1.8 * 128)
    assert reserve.tokens(20, is_comparison=True) == 20
    assert Reserve(comparison_factor=1.0).tokens(5000, is_comparison=True) == 128


def test_only_a_failed_answer_has_one() -> None:
    assert overlay().reserve_tokens("who is it?", FINE, 500) == 0
    assert overlay().reserve_tokens("who is it?", FAILED, 500) == 50
    assert overlay().reserve_tokens("who is it?", Signals(False, False, False, True), 500) == 50
    assert overlay().reserve_tokens(COMPARISON, FAILED, 500) == 90  # ceil(1.8 * 50)


@given(st.text(), st.integers(-5, 10_000), st.tuples(*[st.booleans()] * 4))
def test_it_never_takes_more_than_the_budget(prompt: str, budget: int, said: tuple[bool, bool, bool, bool]) -> None:
    assert 0 <= overlay().reserve_tokens(prompt, Signals(*said), budget) <= max(0, budget)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fraction": 1.1}, r"fraction must be in \[0, 1\], got 1.1"),
        ({"least_tokens": 200}, r"least_tokens must be in \[0, most_tokens = 128\], got 200"),
        ({"comparison_factor": math.nan}, "comparison_factor must be >= 1, got nan"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Reserve(**settings)  # type: ignore[arg-type]
