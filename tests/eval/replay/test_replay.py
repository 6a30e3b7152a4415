"""Replay in bulk: time runs forward."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.replay.workspace_replay import Bulk, PerTurn, growth, turns
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.summarizer.chain import Truncate
from lcm.memory.memory import Memory
from lcm.records.conversation import Event
from lcm.records.query import Query
from lcm.token_estimator import Utf16Units
from tests.support.workspaces import LINES, minute, system, transcript

ROLES = ("system", "user", "assistant", "tool", "assistant", "user", "assistant", "assistant")


@given(st.lists(st.integers(-1, len(LINES) + 1), max_size=12))
def test_every_query_comes_once_before_anything_later_is_heard(asked: list[int]) -> None:
    queries = [Query(f"q{i}", "kitchen", minute(n)) for i, n in enumerate(asked)]
    steps = list(growth([transcript()], queries))
    assert sorted(q.query_id for _, group in steps for q in group) == sorted(q.query_id for q in queries)
    for heard, group in steps:
        if not heard:  # nothing has been said yet
            assert all(query.asked_at < minute(0) for query in group)
            continue
        messages = [message for t, _ in heard for message in t.messages]
        for query in group:
            assert [m for m in transcript().messages if m.created_at <= query.asked_at] == messages
    sizes = [sum(len(t.messages) for t, _ in heard) for heard, _ in steps]
    assert all(a < b for a, b in pairwise(sizes))


def test_only_what_grew_comes_again_and_a_message_without_a_time_with_the_last_known_one() -> None:
    short, long = transcript(LINES[:2], "short"), transcript(LINES, "long")
    untimed = replace(short, messages=(short.messages[0], replace(short.messages[1], created_at=None)))
    steps = list(growth([untimed, long], [Query("early", "a", minute(1)), Query("late", "b", minute(5))]))
    assert [[(t.conversation_id, len(t.messages)) for t, _ in heard] for heard, _ in steps] == [
        [("short", 2), ("long", 2)],
        [("long", 6)],
    ]


@given(st.lists(st.integers(-1, len(LINES) + 1), min_size=1, max_size=6))
@settings(max_examples=15)
def test_turn_by_turn_hears_the_same_before_each_query(asked: list[int]) -> None:
    queries = [Query(f"q{i}", "kitchen", minute(n)) for i, n in enumerate(asked)]
    heard: dict[str, list[list[str]]] = {}
    for replay in (Bulk(), PerTurn()):
        with Memory.open(system()) as memory:
            for group in replay.play(memory, [transcript()], queries):
                said = [message.message_id for message in memory.store.messages()]
                assert len(memory.documents) == len(said)
                heard.setdefault(type(replay).__name__, []).append([*said, *(query.query_id for query in group)])
    assert heard["PerTurn"] == heard["Bulk"]


@pytest.mark.parametrize("asked", [(1, 4, 9), (4,), (9,)])
def test_turn_by_turn_keeps_what_stands_beside_the_messages(asked: tuple[int, ...]) -> None:
    beside = tuple(Event(f"kind {after}", {"number": after}, after) for after in (0, 2, 2, 5, len(LINES)))
    talk = replace(transcript(), events=beside, title="On goats")
    kept: dict[str, list[object]] = {}
    for replay in (Bulk(), PerTurn()):
        with Memory.open(system()) as memory:
            for _ in replay.play(memory, [talk], [Query(f"q{n}", "kitchen", minute(n)) for n in asked]):
                titles = memory.store.conversations()["title"].to_list()
                kept.setdefault(type(replay).__name__, []).append((titles, memory.store.events("talk")))
    assert kept["PerTurn"] == kept["Bulk"]
    assert kept["PerTurn"][-1] == (["On goats"], [event for event in beside if event.after <= asked[-1] + 1])


def test_a_turn_ends_before_a_user_who_follows_somebody_else() -> None:
    said = [replace(message, role=role) for message, role in zip(transcript().messages, ROLES, strict=True)]
    assert [len(turn) for turn in turns(said)] == [1, 4, 3]
    ignoring = replace(system(), session=replace(system().session, ignore_patterns=["talk"]))
    with Memory.open(ignoring) as memory:  # an ignored session is left out
        list(PerTurn().play(memory, [transcript()], [Query("q", "kitchen", minute(9))]))
        assert memory.store.conversations().is_empty()


def test_compaction_acts_turn_by_turn_and_once_in_bulk() -> None:
    compaction = Lossless(
        Truncate(), Utf16Units(), budget_tokens=40, fresh_tail_count=1, leaf_chunk_tokens=20, min_leaf_tokens=0
    )
    compacting = replace(system(), compaction=compaction)
    query = [Query("q", "kitchen", minute(9))]
    events = {}
    for replay in (Bulk(), PerTurn()):
        with Memory.open(compacting) as memory:
            list(replay.play(memory, [transcript()], query))
            events[type(replay).__name__] = memory.store.compactions()["happened_at"].n_unique()
    assert events["Bulk"] == 1
    assert events["PerTurn"] > 1
