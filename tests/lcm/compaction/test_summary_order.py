"""Summaries in an order: the newest that fits, as a walk from the end finds it."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.summary_order import SummaryOrder


@given(st.lists(st.integers(0, 12), max_size=30), st.sets(st.integers(0, 29)), st.integers(0, 30), st.integers(0, 12))
def test_the_newest_that_fits_is_that_of_a_walk_over_what_was_not_taken_out(tokens, gone, before, at_most):
    order: SummaryOrder[int] = SummaryOrder()
    for key in sorted(range(len(tokens)), key=lambda at: (at % 3, at)):  # in no order of its own
        order.add(key, tokens[key], f"s{key}")
    for key in gone & set(range(len(tokens))):
        order.remove(key, tokens[key])
    left = [key for key in range(len(tokens)) if key not in gone]
    fitting = [key for key in left if key < before and tokens[key] <= at_most]
    assert len(order) == len(left)
    assert order.newest(before, at_most) == ((fitting[-1], f"s{fitting[-1]}") if fitting else None)
