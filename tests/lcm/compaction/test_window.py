"""The context of a conversation in memory: in step with the store."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.compaction.window import StoredWindow
from lcm.errors import StoreError
from lcm.records.summary import GuidanceShard, Summary
from tests.lcm.compaction.contexts import NOW, conversation, window


def summary(number: int, context: StoredWindow, at: int, created_at: datetime) -> Summary:
    entry = context.entries[at]
    kind, depth = ("leaf", 0) if entry.is_message else ("condensed", 1)
    return Summary(f"s{number}", "c", kind, depth, "x", number % 4, created_at, source_ids=(entry.item_id,))  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=8), st.integers(0, 4))
def test_summaries_by_when_they_were_made_are_those_of_the_context(made: list[tuple[int, int]], before: int) -> None:
    with conversation([f"message {i}" for i in range(10)]) as store:
        context = window(store)
        for number, (at, minutes) in enumerate(made):
            list(context.made_before(NOW))  # from the first one on it is kept up to date
            entry = context.entries[at]
            if entry.is_message or not entry.depth:
                one = summary(number, context, at, NOW + timedelta(minutes=minutes))
                context.replace(entry.ordinal, entry.ordinal, one)
        standing = context.summaries([entry.item_id for entry in context.entries if not entry.is_message])
        instant = NOW + timedelta(minutes=before)
        earlier = [(one.created_at, one.summary_id, one.token_count) for one in standing if one.created_at < instant]
        told = [(name, tokens) for _, name, tokens in sorted(earlier, reverse=True)]
        assert list(context.made_before(instant)) == list(window(store).made_before(instant)) == told


def test_changes_made_together_are_one_transaction() -> None:
    with conversation(["one", "two", "three"]) as store:
        context = window(store)
        ordinal = context.entries[0].ordinal
        with pytest.raises(RuntimeError), context.together():
            context.replace(ordinal, ordinal, summary(1, context, 0, NOW))
            raise RuntimeError
        assert not store.summaries("c")
        assert [entry.item_id for entry in context.entries] == ["c-m1", "c-m2", "c-m3"]
        with context.together():
            context.replace(ordinal, ordinal, summary(1, context, 0, NOW))
            context.note(NOW, "quality", "{}")
        assert [entry.item_id for entry in context.entries] == ["s1", "c-m2", "c-m3"]
        assert store.compactions()["event"].to_list() == ["leaf", "quality"]


def test_what_another_writer_took_away_is_not_protected() -> None:
    with conversation(["one", "two"]) as store:
        context = window(store)
        first = context.entries[0]
        shard = GuidanceShard(first.item_id, "c", "one", NOW, "words", 0.5, "session_turn", 1)
        with pytest.raises(StoreError, match="plan again"):
            context.protect(first.ordinal, first.ordinal, [replace(shard, message_id="c-m2")])
        store.remove_from_context("c", [first.ordinal])
        with pytest.raises(StoreError, match="plan again"):
            context.protect(first.ordinal, first.ordinal, [shard])
        assert [entry.item_id for entry in context.entries] == ["c-m2"]
