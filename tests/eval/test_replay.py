"""Replay in bulk: time runs forward."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from eval.replay.bulk import Bulk
from lcm.records import Query
from tests.workspaces import LINES, minute, transcript


@given(st.lists(st.integers(-1, len(LINES) + 1), max_size=12))
def test_every_query_comes_once_before_anything_later_is_heard(asked: list[int]) -> None:
    queries = [Query(f"q{i}", "kitchen", minute(n)) for i, n in enumerate(asked)]
    steps = list(Bulk().steps([transcript()], queries))
    assert sorted(q.query_id for _, group in steps for q in group) == sorted(q.query_id for q in queries)
    for heard, group in steps:
        if not heard:  # nothing has been said yet
            assert all(query.asked_at < minute(0) for query in group)
            continue
        messages = [message for t in heard for message in t.messages]
        for query in group:
            assert [m for m in transcript().messages if m.created_at <= query.asked_at] == messages
    sizes = [sum(len(t.messages) for t in heard) for heard, _ in steps]
    assert all(a < b for a, b in pairwise(sizes))


def test_a_message_without_a_time_is_heard_with_the_last_known_one() -> None:
    talk = transcript()
    untimed = replace(talk, messages=(*talk.messages[:2], replace(talk.messages[2], created_at=None)))
    ((heard, _),) = Bulk().steps([untimed], [Query("q", "kitchen", minute(1))])
    assert len(heard[0].messages) == 3


def test_only_what_grew_comes_again() -> None:
    short, long = transcript(LINES[:2], "short"), transcript(LINES, "long")
    steps = list(Bulk().steps([short, long], [Query("early", "a", minute(1)), Query("late", "b", minute(5))]))
    assert [[(t.conversation_id, len(t.messages)) for t in heard] for heard, _ in steps] == [
        [("short", 2), ("long", 2)],
        [("long", 6)],
    ]
