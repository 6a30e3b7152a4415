"""Summaries in an order: the newest that fits, as a walk from the end finds it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.clustering.prior_context import PriorContext, prior_context
from lcm.compaction.summary_order import SummaryOrder
from lcm.records.summary import Summary
from lcm.token_estimator.utf16_units import Utf16Units
from tests.lcm.compaction.contexts import NOW

TOKENS = st.lists(st.integers(0, 12), max_size=30)


def ordered(tokens: Sequence[int]) -> SummaryOrder[int]:
    order: SummaryOrder[int] = SummaryOrder()
    for key in sorted(range(len(tokens)), key=lambda at: (at % 3, at)):  # in no order of its own
        order.add(key, tokens[key], f"s{key}")
    return order


@given(TOKENS, st.integers(0, 30), st.integers(0, 12))
def test_the_newest_that_fits_is_that_of_a_walk(tokens: list[int], before: int, at_most: int) -> None:
    fitting = [key for key in range(min(before, len(tokens))) if tokens[key] <= at_most]
    assert ordered(tokens).newest(before, at_most) == ((fitting[-1], f"s{fitting[-1]}") if fitting else None)


@given(TOKENS, st.sets(st.integers(0, 29)))
def test_what_was_taken_out_is_not_found(tokens: list[int], gone: set[int]) -> None:
    order = ordered(tokens)
    for key in gone & set(range(len(tokens))):
        order.remove(key, tokens[key])
    left = [key for key in range(len(tokens)) if key not in gone]
    assert len(order) == len(left)
    assert order.newest(30, 12) == ((left[-1], f"s{left[-1]}") if left else None)


@given(TOKENS, st.integers(0, 30), st.integers(1, 40))
def test_prior_context_is_that_of_a_walk_through_all(tokens: list[int], before: int, limit: int) -> None:
    estimator = Utf16Units()
    summaries = [
        Summary(f"s{key}", "c", "leaf", 0, f"{key:b} words", count, NOW) for key, count in enumerate(tokens)
    ]  # 0 tokens: nobody counted, and the text has some
    taken: list[Summary] = []
    used = 0
    for one in reversed(summaries[:before]):
        cost = one.token_count or estimator.count([one.content])[0]
        if used + cost <= limit:
            taken.insert(0, one)
            used += cost
    ids, text = tuple(one.summary_id for one in taken), "\n\n".join(one.content for one in taken)
    read = {one.summary_id: one for one in summaries}.__getitem__
    assert prior_context(ordered(tokens).newest, before, limit, read, estimator) == PriorContext(ids, text, used)
