"""Every judged message has one place, whatever a ranking does."""

from collections import Counter

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from eval.ladder.losses import FOUND, LATE, message_ranks, placed
from lcm.retrieval.ranking.pipeline import PLAN_SCHEMA, SOURCE, TRACE_SCHEMA

MESSAGES = ("a", "b", "c", "d")
DOCUMENTS = {"1": ("a",), "2": ("b",), "3": ("a", "c"), "4": ()}
"""Document -> the messages that it was made of; none was made of `d`."""
STAGES = (SOURCE, "fusion", "cut", "reorder")
Step = tuple[str, ...]
"""Documents, best first."""

steps = st.lists(
    st.lists(st.sampled_from(sorted(DOCUMENTS)), unique=True).map(tuple), min_size=len(STAGES), max_size=len(STAGES)
)


def trace(orders: list[Step], stands_for: dict[str, list[str]] | None = None, scored_from: int = 1) -> pl.DataFrame:
    rows = [
        (step, STAGES[step], "q", one, rank, 1 / rank if step >= scored_from else None, (stands_for or {}).get(one, []))
        for step, order in enumerate(orders)
        for rank, one in enumerate(order, start=1)
    ]
    return pl.DataFrame(rows, schema=TRACE_SCHEMA, orient="row")


def places(orders: list[Step], first: int, stands_for: dict[str, list[str]] | None = None) -> dict[str, str]:
    plan = pl.DataFrame([("q", step, stage) for step, stage in enumerate(STAGES)], schema=PLAN_SCHEMA, orient="row")
    covers = [("q", one, message) for one, messages in DOCUMENTS.items() for message in messages]
    covered = pl.DataFrame(covers, schema=["query_id", "document_id", "message_id"], orient="row")
    judged = pl.DataFrame({"query_id": "q", "message_id": list(MESSAGES)})
    ranks = message_ranks(trace(orders, stands_for), covered, plan)
    return dict(placed(judged, ranks, plan, first).select("message_id", "place").iter_rows())


def told(orders: list[Step], first: int, message: str) -> str:
    """The place of a message by the words of the definition."""
    ours = [[rank for rank, one in enumerate(order, 1) if message in DOCUMENTS[one]] for order in orders]
    if not any(ours):
        return SOURCE
    if ours[-1] and min(ours[-1]) <= first:
        return FOUND
    for step in range(len(orders) - 2, 0, -1):  # the source gives no scores
        if ours[step] and min(ours[step]) <= first:
            return STAGES[step + 1]
    last = max(step for step, ranks in enumerate(ours) if ranks)
    return LATE if last == len(orders) - 1 else STAGES[last + 1]


@given(steps, st.integers(1, 4))
def test_each_message_has_the_one_place_that_the_definition_gives_it(orders: list[Step], first: int) -> None:
    found = places(orders, first)
    assert found == {message: told(orders, first, message) for message in MESSAGES}
    assert sum(Counter(found.values()).values()) == len(MESSAGES)


def test_what_is_left_out_is_found_where_another_stands_for_it() -> None:
    orders = [("2", "1"), ("2", "1"), ("2",), ("2",)]
    assert places(orders, 1)["a"] == "cut"
    assert places(orders, 1, {"2": ["1"]})["a"] == FOUND


def test_an_order_before_any_score_means_nothing_and_the_answer_always_does() -> None:
    orders = [("1", "2"), ("2", "1"), ("2", "1"), ("2",)]
    assert places(orders, 1)["a"] == "reorder"  # dropped there, and never first since scores are given
    covers = pl.DataFrame({"query_id": "q", "document_id": "1", "message_id": "a"})
    plan = pl.DataFrame({"query_id": "q", "step": range(4), "stage": STAGES}, schema=PLAN_SCHEMA)
    unscored = message_ranks(trace([("1",)] * 4, scored_from=4), covers, plan)
    assert unscored["rank"].to_list() == [None, None, None, 1]
