from hypothesis import given
from hypothesis import strategies as st

from lcm.context.assembly.packing import first_fit, longest_prefix

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
