"""What would be compacted: over ledgers, without a store. Golden vectors hold the original's triggers and chunks."""

from dataclasses import replace

from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.lossless.planning import (
    condensation,
    counted_tokens,
    leaf_chunk,
    raw_tokens,
    tail_start,
)
from lcm.records.summary import ContextEntry
from tests.lcm.compaction.contexts import head, lossless

LIMITS = lossless(
    head(0),
    context_threshold=0.75,
    budget_tokens=1000,
    leaf_chunk_tokens=100,
    min_leaf_tokens=0,
    leaf_min_fanout=3,
    condensed_min_fanout=2,
    condensed_min_fanout_hard=2,
    condensed_target_tokens=20,
    rules="original",
)
CORRECTED = replace(LIMITS, rules="corrected")


def context(*items: tuple[int | None, int]) -> ContextTotals:
    """Entries of (depth, tokens); depth None is a message."""
    return ContextTotals(
        ContextEntry(place * 1024, "message" if depth is None else "summary", f"i{place}", tokens, depth)
        for place, (depth, tokens) in enumerate(items)
    )


def messages(*tokens: int) -> list[tuple[None, int]]:
    return [(None, count) for count in tokens]


def test_live_tokens_count_where_they_are_more_and_are_numbers() -> None:
    totals = context(*messages(375, 375))
    assert [counted_tokens(totals, live) for live in (None, 751.9, -5, float("nan"), float("inf"))] == [
        *(750, 751, 750, 750, 750)
    ]


def test_what_was_weighed_counts_where_no_tokens_are_stored() -> None:
    totals = context(*messages(60, 0, -3, 1, 1))
    assert [entry.item_id for entry in totals.unweighed] == ["i1", "i2"]
    totals.weigh({"i1": 30, "i2": 10})
    assert raw_tokens(totals, tail_start(totals, 2)) == 60 + 30 + 10
    assert (totals.tokens, totals.unweighed) == (60 - 3 + 2, [])
    totals.put(0, 3, ContextEntry(0, "summary", "s", 5, 0))
    assert (raw_tokens(totals, tail_start(totals, 2)), totals.tokens) == (0, 5 + 2)


def test_a_leaf_takes_the_oldest_neighbours_that_fit() -> None:
    def places(*items: tuple[int | None, int]) -> list[int] | None:
        totals = context(*items)
        chunk = leaf_chunk(totals, LIMITS, tail_start(totals, 2))
        return chunk and list(range(chunk.start, chunk.stop))

    assert places(*messages(40, 40, 40, 40)) == places(*messages(60, 40, 40, 40)) == [0, 1]
    assert places(*messages(500, 40, 40, 40)) == places(*messages(1, 500, 40, 40)) == [0]
    assert places((0, 9), (1, 9), (None, 5), (0, 9), *messages(50, 5, 5)) == [2]
    assert places(*messages(5, 5)) is None


def test_a_chunk_below_the_minimum_takes_one_more_or_waits_at_the_tail() -> None:
    limits = replace(LIMITS, min_leaf_tokens=30)
    beyond = leaf_chunk(context(*messages(1, 500, 40, 40)), limits, 2)
    assert beyond is not None
    assert (beyond.tokens, len(beyond.entries)) == (501, 2)
    short = context(*messages(20, 9, 1, 1))
    assert leaf_chunk(short, limits, 2) is None
    assert leaf_chunk(short, limits, 2, is_forced=True) is not None
    ended = leaf_chunk(context((None, 20), (0, 1), (None, 1)), limits, 2)
    assert ended is not None, "what a summary ends cannot grow: it does not wait"


def test_what_cannot_become_shorter_is_passed_over_where_growth_is_forbidden() -> None:
    totals = context((None, 15), (0, 9), (None, 16), (0, 9))
    assert leaf_chunk(totals, LIMITS, 4)[::3] == (0, 0), "where it starts, and the depth of its summary"  # type: ignore[index]
    assert leaf_chunk(totals, CORRECTED, 4).start == 2  # type: ignore[union-attr]


def test_the_first_run_starves_condensation_where_every_run_does_not() -> None:
    short_first = context((0, 30), (1, 30), (0, 30), (0, 30), (0, 30), (None, 1))
    assert condensation(short_first, LIMITS, 5) is None
    assert condensation(short_first, CORRECTED, 5)[:1] == (2,)  # type: ignore[index]
    long_leaves = context((0, 60), (0, 60), (0, 60), (None, 1))
    assert condensation(long_leaves, LIMITS, 3) is None, "two do not fit into 100 tokens, three are wanted"
    chunk = condensation(long_leaves, CORRECTED, 3)
    assert chunk is not None
    assert (chunk.start, len(chunk.entries), chunk.depth) == (0, 2, 1)


def test_a_run_below_its_fanout_or_worth_too_little_is_left_and_the_shallowest_goes_first() -> None:
    pair, deep = context((0, 30), (0, 30), (None, 1)), context((2, 30), (2, 30), (1, 30), (1, 30), (0, 30))
    for limits in (LIMITS, CORRECTED):
        assert condensation(pair, limits, 2) is None
        assert condensation(pair, limits, 2, is_hard=True) is not None
        assert condensation(context((0, 6), (0, 6), (0, 6)), limits, 3) is None, "18 tokens, 20 are aimed at"
        depths = [condensation(deep, limits, 5, *bounds).depth for bounds in ((), (2,), (1, 3))]  # type: ignore[union-attr]
        assert depths == [2, 3, 3]
