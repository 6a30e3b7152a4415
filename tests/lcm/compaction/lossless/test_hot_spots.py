"""Messages that later ones come back to stay in the context of a lossless compaction."""

import itertools
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.lossless.lossless import HOT_TOKENS, TAIL_GROWTH
from lcm.compaction.lossless.planning import fresh_tail, hot_messages
from lcm.records.conversation import Message, Part
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import (
    BEGIN,
    CONVERSATION,
    NOW,
    after_turn,
    compacted,
    conversation,
    head,
    lossless,
    message,
    shown,
    window,
)

SMALL: dict[str, Any] = {"budget_tokens": 1000, "leaf_chunk_tokens": 200, "min_leaf_tokens": 0, "fresh_tail_count": 2}
THINGS = ("src/app.py", "src/db.py", "docs/plan.md", "nothing")
NAMED = st.lists(st.sampled_from(THINGS), max_size=2).map(" and ".join)
TEXTS = st.lists(st.builds(lambda named, n: named + " word" * n, NAMED, st.integers(0, 60)), min_size=1, max_size=20)
FILLER = " and so on" * 12
TALK = [
    f"The pool is set up in src/db.py, as we agreed{FILLER}",
    *(f"We speak of matter {n}{FILLER}" for n in range(4)),
    f"src/db.py again{FILLER}",
    *(f"We speak of another matter {n}{FILLER}" for n in range(4)),
    *(f"Look at src/db.py once more{FILLER}" for _ in range(3)),
]


def raw(store: Store) -> set[str]:
    return {entry.item_id for entry in store.context(CONVERSATION) if entry.is_message}


def beneath(store: Store) -> Counter[str]:
    """All messages of the context, or of the leaves beneath it."""
    covered = Counter[str]()
    waiting = [(entry.item_id, entry.is_message) for entry in store.context(CONVERSATION)]
    for item_id, is_message in waiting:
        if is_message:
            covered[item_id] += 1
            continue
        (summary,) = store.summaries_by_id([item_id]).values()
        waiting += [(source, summary.depth == 0) for source in summary.source_ids]
    return covered


def test_what_later_messages_come_back_to_stays_and_parts_what_is_around_it() -> None:
    """Of five that name the file the first is said again four times, the second three; the last two are the tail."""
    tail = ["summary", "c-m12", "c-m13"]
    for share, stands in ((0.0, tail), (0.1, ["c-m1", "summary", "c-m6", *tail]), (0.05, ["c-m1", *tail])):
        with conversation(TALK) as store:
            folding = lossless(head(40), **SMALL, leaf_min_fanout=20, hot_spot_share=share)
            assert compacted(store, folding, is_forced=True).is_compacted
            assert [name for name, _ in itertools.groupby(shown(store))] == stands
            before = store.context(CONVERSATION)
            assert not compacted(store, folding, is_forced=True).is_compacted
            assert store.context(CONVERSATION) == before


@pytest.mark.parametrize("rules", ["corrected", "original"])
@given(texts=TEXTS, share=st.floats(0, 0.6), heat=st.integers(1, 4), count=st.integers(0, 4), fanout=st.integers(1, 5))
def test_what_is_hot_stays_within_its_tokens_and_no_message_is_lost(
    rules: str, texts: list[str], share: float, heat: int, count: int, fanout: int
) -> None:
    fields = {**SMALL, "fresh_tail_count": count, "leaf_min_fanout": fanout, "rules": rules}
    folding = lossless(head(40), **fields, hot_spot_share=share, hot_spot_heat=heat)
    with conversation(texts) as store:
        context = window(store)
        hot = hot_messages(context, fresh_tail(folding, context), int(share * 1000), heat)
        known = context.heat()
        assert sum(hot.values()) <= share * 1000
        assert all(known[name].heat >= heat for name in hot)
        left = {name: known[name].heat for name in raw(store) if name not in hot and known[name].heat >= heat}
        weights = {entry.item_id: context.entries.weight(entry) for entry in context.entries}
        tail = {entry.item_id for entry in context.entries[fresh_tail(folding, context) :]}
        for name, of_left in left.items():  # it would take the place of cooler ones, or there is no room beside hotter
            hotter = sum(weight for other, weight in hot.items() if known[other].heat >= of_left)
            assert name in tail or weights[name] + hotter > int(share * 1000)
        compacted(store, folding, is_forced=True)
        assert hot.keys() | tail <= raw(store)
        assert beneath(store) == Counter(f"c-m{n}" for n in range(1, len(texts) + 1))
        before = store.context(CONVERSATION)
        if rules == "corrected":  # the original condenses single summaries at a fanout of 1, and ends where one grew
            assert not compacted(store, folding, is_forced=True).summary_ids
            assert store.context(CONVERSATION) == before


@given(texts=TEXTS)
def test_a_session_that_is_reopened_at_every_turn_folds_the_same(texts: list[str]) -> None:
    folding = lossless(head(40), **{**SMALL, "budget_tokens": 300}, hot_spot_share=0.3, hot_spot_heat=1)
    contexts = []
    for is_reopened in (False, True):
        store = conversation(texts[:1])
        kept = window(store)
        for number, text in enumerate(texts[1:], 2):
            store.append(CONVERSATION, [message(number, text)], Utf16Units())
            kept.follow()
            kept = window(store) if is_reopened else kept
            after_turn(folding, kept)
            assert beneath(store) == Counter(f"c-m{n}" for n in range(1, number + 1))
        contexts.append(store.context(CONVERSATION))
        store.close()
    assert contexts[0] == contexts[1]


def read_file(number: int, path: str, words: str) -> list[Message]:
    """A call and its result."""
    call = Part("tool", tool_call_id=f"call {number}", tool_name="read", tool_input=f'{{"path": "{path}"}}')
    result = Part("tool", text=words, tool_call_id=f"call {number}", tool_name="read")
    at = BEGIN + timedelta(minutes=number)
    told = [("assistant", f'[tool read] {{"path": "{path}"}}', call), ("tool", words, result)]
    return [
        Message(f"{name}{number}", role, text, "s", at, parts=(part,))  # type: ignore[arg-type]
        for name, (role, text, part) in zip(("call ", "result "), told, strict=True)
    ]


def tool_talk() -> Store:
    """A file that is read at first, what is read besides, and three who name that file."""
    store = Store(opened_at=NOW)
    reads = [read_file(n, path, f"{n}{FILLER}") for n, path in enumerate(["src/db.py", "a.py", "b.py", "c.py"])]
    later = [message(n, f"src/db.py is what counts{FILLER}") for n in range(5, 9)]
    store.append(CONVERSATION, [*(one for pair in reads for one in pair), *later], Utf16Units())
    return store


def test_a_call_stays_with_its_result_or_both_go() -> None:
    fields = {**SMALL, "fresh_tail_count": 4}
    with tool_talk() as store:
        weights = {entry.item_id: entry.tokens for entry in store.context(CONVERSATION)}
    both = weights["call 0"] + weights["result 0"]
    for share, kept in ((both / 1000, ["call 0", "result 0"]), ((both - 1) / 1000, [])):
        with tool_talk() as store:
            compacted(store, lossless(head(40), **fields, hot_spot_share=share), is_forced=True)
            assert raw(store) == {*kept, "c-m5", "c-m6", "c-m7", "c-m8"}


def test_a_result_whose_call_is_folded_goes() -> None:
    with tool_talk() as store:
        context = window(store)
        names = ["call 0", "result 0"]
        assert set(hot_messages(context, 8, 500, 3)) == set(names)
        context.entries.put(0, 1)
        assert set(context.heat()) == raw(store) - {"call 0"}
        assert hot_messages(context, 1, 500, 0) == {}


def test_what_is_hot_triggers_no_leaf() -> None:
    """The messages before the tail weigh more than a leaf chunk, and less without those that stay."""
    told = []
    for share in (0.0, 0.6):
        folding = lossless(head(40), **{**SMALL, "leaf_chunk_tokens": 150}, context_threshold=1.0, hot_spot_share=share)
        with conversation([TALK[0], *TALK[5:6], *TALK[1:3], *TALK[5:6], *TALK[-4:]]) as store:
            report = after_turn(folding, window(store))
            hot = [one for one in report.triggers if one.what == HOT_TOKENS]
            told.append((report.is_compacted, report.triggers[1].tokens + sum(one.tokens for one in hot)))
            assert [one.threshold for one in hot] == ([600] if share else [])
    assert [is_compacted for is_compacted, _ in told] == [True, False]
    assert told[0][1] == told[1][1], "what is hot is told apart from what triggers a leaf"


def test_a_tail_that_grows_ends_at_a_summary_and_tells_of_its_growth() -> None:
    """What stays because it is hot stands before summaries: were it the tail's, they would be too."""
    grows = {"fresh_tail_max_count": 13, "fresh_tail_novelty": 0.0}
    with conversation(TALK) as store:
        context, folding = window(store), lossless(head(40), **SMALL, hot_spot_share=0.1, **grows)
        assert fresh_tail(folding, context) == 0
        weights = [context.entries.weight(entry) for entry in context.entries]
        reading = next(one for one in compacted(store, folding, context).triggers if one.what == TAIL_GROWTH)
        assert (reading.tokens, reading.threshold) == (sum(weights[:-2]), None)
        compacted(store, lossless(head(40), **SMALL, hot_spot_share=0.1), is_forced=True)
        context = window(store)
        assert context.entries[0].is_message
        assert not context.entries[fresh_tail(folding, context) - 1].is_message
