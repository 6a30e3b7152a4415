"""One conversation through the modes of compaction."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from lcm.compaction.work import in_lockstep
from lcm.records.summary import Summary
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import (
    CONVERSATION,
    NOW,
    Stub,
    after_turn,
    compacted,
    conversation,
    head,
    lay_out,
    lossless,
    message,
    window,
)

SMALL: dict[str, Any] = {
    "budget_tokens": 1000,
    "fresh_tail_count": 2,
    "leaf_chunk_tokens": 100,
    "min_leaf_tokens": 0,
    "leaf_min_fanout": 3,
    "condensed_min_fanout": 2,
    "leaf_target_tokens": 30,
    "condensed_target_tokens": 20,
}
WORDS = ["w" * 200] * 12
"""Twelve messages of 50 tokens."""


def summarised(depths: Sequence[int], tokens: int = 30) -> Store:
    """A context of summaries of these depths, each of so many tokens, and one message."""
    store = Store(opened_at=NOW)
    words = [f"{place} ".ljust(4 * tokens, "s") for place in range(len(depths))]
    items = [
        Summary(f"s{place}", CONVERSATION, "condensed" if depth else "leaf", depth, text, tokens, NOW)
        for place, (depth, text) in enumerate(zip(depths, words, strict=True))
    ]
    lay_out(store, [*items, message(1, "w")], [*(tokens for _ in items), 1])
    return store


def shape(store: Store) -> list[int | None]:
    """The depths of the context items; None is a message."""
    return [entry.depth for entry in store.context(CONVERSATION)]


def test_a_forced_sweep_folds_all_but_the_tail() -> None:
    store = conversation(WORDS)
    report = compacted(store, lossless(head(80), **SMALL), is_forced=True)
    assert shape(store) == [1, None, None], "five leaves of 20 tokens fit into one of depth 1"
    assert (report.is_compacted, report.reason, report.tokens_before) == (True, "compacted", 12 * 50)
    assert report.tokens_after == sum(entry.tokens for entry in store.context(CONVERSATION))
    assert report.summary_ids == tuple(summary.summary_id for summary in store.summaries())
    leaf = store.summaries()[0]
    assert (leaf.method, leaf.model, leaf.confidence, leaf.level) == ("stub", "model", 0.5, "normal")


def test_an_unforced_sweep_goes_from_above_the_threshold_to_below_it() -> None:
    store = conversation(WORDS)
    report = compacted(store, lossless(stub := head(80), **SMALL))
    assert (report.reason, report.is_compacted, stub.requests) == ("below threshold", False, [])
    report = compacted(store, lossless(stub, **SMALL | {"budget_tokens": 700}))
    assert report.tokens_after == 600 - (100 - 20) <= 0.75 * 700
    assert shape(store) == [0, *[None] * 10]


def test_a_turn_makes_one_leaf_and_condenses_when_enough_stand_side_by_side() -> None:
    store = conversation(WORDS[:3])
    compaction, view = lossless(head(80), **SMALL), window(store)
    shapes = []
    for number in range(4, 12):
        store.append(CONVERSATION, [message(number, "w" * 200)], Utf16Units())
        view.follow()
        after_turn(compaction, view)
        shapes.append([depth for depth in shape(store) if depth is not None])
    assert shapes == [[0], [0], [0, 0], [0, 0], [1], [1], [1, 0], [1, 0]]
    assert view.tokens == sum(entry.tokens for entry in store.context(CONVERSATION))


def test_live_tokens_of_the_host_count_against_the_threshold() -> None:
    store, compaction = conversation(["w" * 40] * 4), lossless(head(80), **SMALL)
    quiet, loud = (after_turn(compaction, window(store), live).reason for live in (750, 751))
    assert (quiet, loud) == ("below threshold", "live context still exceeds target")


def test_a_cut_source_is_the_work_of_no_model_and_equal_summaries_have_different_ids() -> None:
    store = conversation(WORDS)
    compacted(store, lossless(Stub(lambda _: ""), **SMALL), is_forced=True)
    assert {(one.level, one.method, one.confidence) for one in store.summaries()} == {("fallback", "truncate", 0.0)}
    report = compacted(conversation(WORDS), lossless(Stub(lambda _: "same"), **SMALL), is_forced=True)
    assert len(set(report.summary_ids)) == len(report.summary_ids) > 2


def test_a_sweep_ends_where_the_context_is_no_smaller_than_it_has_been() -> None:
    """The leaf of one short message is longer than it; the first condensed summary saves less than that."""
    store = summarised([0, 0, 0, 1, 1])
    store.append(CONVERSATION, [message(2, "w"), message(3, "w")], Utf16Units())
    stub = Stub(lambda request: "s" * 4 * 88 if request.depth else "")  # three leaves have 90 tokens
    fields = SMALL | {"condensed_target_tokens": 30, "rules": "original"}
    report = compacted(store, lossless(stub, **fields), is_forced=True)
    assert [request.depth for request in stub.requests] == [0, 1], "another of depth 2 could be made"
    assert report.tokens_after > report.tokens_before


@pytest.mark.parametrize(("rules", "counted"), [("original", 0), ("corrected", 1)])
def test_what_stands_around_a_summary_counts_where_it_is_no_smaller_than_its_source(rules: str, counted: int) -> None:
    """One word is less than two short messages; with some fifty tokens of frame it is more."""
    incidents = Counter[str]()
    compaction = lossless(Stub(lambda _: "Mended."), **SMALL | {"rules": rules, "fresh_tail_count": 1})
    with conversation(["The parser loops on an empty file, I mended it.", "Well done, thank you.", "Bye."]) as store:
        assert compacted(store, compaction, incidents=incidents, is_forced=True).is_compacted
    assert incidents["a summary is no smaller than its source"] == counted


@pytest.mark.parametrize(("rules", "expected"), [("original", [1, None]), ("corrected", [0, None])])
def test_one_summary_alone_is_condensed_by_the_original_where_a_fanout_of_one_says_so(rules, expected):
    """The plugin's manifest asks for two at least; its engine takes one, and would condense its own copy again."""
    store = summarised([0])
    compacted(store, lossless(head(80), **SMALL | {"leaf_min_fanout": 1, "rules": rules}), is_forced=True)
    assert shape(store) == expected


def test_a_plan_that_another_writer_has_overtaken_is_refused_without_loss() -> None:
    store = conversation(WORDS)
    compaction, view = lossless(head(80), **SMALL), window(store)
    work = compaction.compact(view, NOW, is_forced=True, incidents=Counter())
    request = next(work)
    compacted(store, compaction, is_forced=True)
    theirs = shape(store)
    with pytest.raises(StopIteration) as end:
        work.send(compaction.summarizer.summarize([request], incidents=Counter())[0])
    assert "plan again" in end.value.value.reason
    assert shape(store) == theirs
    assert list(view.entries) == store.context(CONVERSATION), "the window has read the context again"
    assert store.compactions()["event"].to_list()[-1] == "failure"


def test_what_is_appended_meanwhile_stays() -> None:
    store = conversation(WORDS)
    compaction, view = lossless(head(80), **SMALL), window(store)
    work = compaction.compact(view, NOW, is_forced=True, incidents=Counter())
    answer = compaction.summarizer.summarize([next(work)], incidents=Counter())[0]
    store.append(CONVERSATION, [message(13, "new")], Utf16Units())
    try:
        while True:
            answer = compaction.summarizer.summarize([work.send(answer)], incidents=Counter())[0]
    except StopIteration as end:
        assert end.value.reason == "compacted"
    view.follow()
    assert list(view.entries) == store.context(CONVERSATION)
    assert view.entries[-1].item_id == f"{CONVERSATION}-m13"


def partly_silent(silent: Sequence[int]) -> Store:
    """Twelve messages of 50 tokens, those of these places without words."""
    store = Store(opened_at=NOW)
    said = [message(i, "" if i - 1 in silent else "w" * 200) for i in range(1, 13)]
    store.append(CONVERSATION, said, Utf16Units(), lambda _: "w" * 200)
    return store


@pytest.mark.parametrize(("silent", "covered"), [((), 2), ((0, 1), 3), ((0, 1, 2, 3), 5)])
def test_a_chunk_without_words_takes_in_what_follows(silent: Sequence[int], covered: int) -> None:
    store, compaction = partly_silent(silent), lossless(stub := head(80), **SMALL)
    after_turn(compaction, window(store))
    assert len(store.summaries()[0].source_ids) >= covered
    assert all("w" in request.text for request in stub.requests)


def test_a_run_without_words_stays_as_it_is_and_no_one_is_asked() -> None:
    store = partly_silent([*range(10), 11])
    compaction, view = lossless(head(80), **SMALL), window(store)
    assert compacted(store, compaction, view, is_forced=True).reason == "nothing to compact"
    store.append(CONVERSATION, [message(13, "w" * 200), message(14, "w"), message(15, "w")], Utf16Units())
    view.follow()
    assert compacted(store, compaction, view, is_forced=True).reason == "compacted"
    assert len(store.summaries()[0].source_ids) == 12, "ten without words and the next chunk of two"


class Ticking:
    """A clock that moves by a second whenever someone looks."""

    seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


@pytest.mark.parametrize("how", [{"is_forced": True}, {"target_tokens": 1}])
def test_a_late_run_ends_after_the_pass_under_way(how: dict[str, Any]) -> None:
    store = conversation(WORDS)
    compaction = lossless(head(80), **SMALL, sweep_deadline_seconds=1.5, until_under_deadline_seconds=1.5)
    report = compacted(store, compaction, clock=Ticking(), **how)
    assert (report.reason, len(report.summary_ids)) == ("time limit", 2)
    assert compacted(store, compaction, **how).reason != "time limit"


def test_reasons_under_a_target() -> None:
    store, compaction = conversation(WORDS), lossless(head(80), **SMALL)
    told = [compacted(store, compaction, target_tokens=target) for target in (601, 300, 1, 1)]
    assert [(one.reason, one.is_compacted, one.rounds) for one in told[:2]] == [
        ("already under target", False, 0),
        ("compacted", True, 1),
    ]
    missed, again = told[2:]
    assert missed.reason == again.reason == "could not reach target"
    assert (again.is_compacted, again.rounds >= 1) == (False, True)


def test_the_hard_fanout_condenses_what_the_others_leave_when_a_target_is_missed() -> None:
    shapes = {}
    for rules in ("original", "corrected"):
        store = conversation(WORDS[:6])
        compacted(store, lossless(head(80), **SMALL | {"rules": rules, "leaf_min_fanout": 8}), target_tokens=1)
        shapes[rules] = shape(store)
    assert shapes == {"original": [0, 0, None, None], "corrected": [1, None, None]}


@pytest.mark.parametrize(("rules", "previous"), [("original", None), ("corrected", "x" * 80)])
def test_depth_one_is_shown_the_depth_one_before_it(rules: str, previous: str | None) -> None:
    stub = Stub(lambda _: "x" * 80)
    folding = lossless(stub, **SMALL | {"condensed_min_fanout": 9, "rules": rules})
    compacted(conversation(["w" * 200] * 24), folding, is_forced=True)
    assert [request.previous for request in stub.requests if request.depth == 1] == [None, previous]


CHANGES: dict[str, Any] = {
    "budget_tokens": 200,
    "context_threshold": 0.1,
    "fresh_tail_count": 5,
    "leaf_chunk_tokens": 200,
    "min_leaf_tokens": 100,
    "leaf_min_fanout": 5,
    "condensed_min_fanout": 3,
    "incremental_max_depth": 0,
    "leaf_target_tokens": 5,
    "condensed_target_tokens": 600,
    "summary_max_overage_factor": 1.0,
    "timezone": "Asia/Tokyo",
    "rules": "original",
}


def test_every_field_that_counts_changes_what_is_asked_for() -> None:
    plain = asked({})
    assert [name for name, value in CHANGES.items() if asked({name: value}) == plain] == []


def asked(changes: dict[str, Any]) -> list[Any]:
    """What is asked for and made over forty turns."""
    store = conversation(["w" * 120])
    stub = Stub(lambda request: request.text[: 130 + 40 * request.depth])
    compaction, view = lossless(stub, **{**SMALL, "incremental_max_depth": 2, **changes}), window(store)
    for number in range(2, 40):
        store.append(CONVERSATION, [message(number, f"{number} " + "w" * 120)], Utf16Units())
        view.follow()
        after_turn(compaction, view)
    return [stub.requests, [(one.content, one.level) for one in store.summaries()]]


def test_works_side_by_side_ask_in_batches_and_report_in_order(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store, names, stub = Store(opened_at=NOW), [f"c{i}" for i in range(5)], head(80)
    for place, name in enumerate(names):
        conversation(["w" * 200] * (3 + 2 * place), store, name)
    compaction = lossless(stub, **SMALL)
    works = [compaction.compact(window(store, name), NOW, is_forced=True, incidents=Counter()) for name in names]
    reports = list(in_lockstep(works, stub, width=3, incidents=Counter()))
    assert [report.conversation_id for report in reports] == names
    assert max(stub.batches) == 3
    assert caplog.text.count("context") == sum(len(report.summary_ids) for report in reports)
