"""One conversation through the modes of compaction."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from lcm.compaction.lockstep import in_lockstep, run
from lcm.compaction.lossless.lossless import Lossless
from lcm.records.summary import CompactionReport, Summary, SummaryRequest, SummaryResult
from lcm.store.store import Store
from lcm.token_estimator.utf16_units import Utf16Units
from tests.lcm.compaction.contexts import (
    CONVERSATION,
    NOW,
    Stub,
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


@dataclass
class Limited:
    """A summarizer that loses patience."""

    inner: Stub
    most: int

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        assert len(self.inner.requests) < self.most, "asked without end"
        return self.inner.summarize(requests, incidents=Counter())


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


def compacted(store: Store, compaction: Lossless, **how: Any) -> CompactionReport:
    return run(
        compaction.compact(window(store), NOW, **how, incidents=Counter()), compaction.summarizer, incidents=Counter()
    )


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


def test_nothing_happens_below_the_threshold_unless_forced() -> None:
    store = conversation(WORDS)
    stub = head(80)
    report = compacted(store, lossless(stub, **SMALL))
    assert (report.reason, report.is_compacted, stub.requests) == ("below threshold", False, [])


def test_an_unforced_sweep_stops_as_soon_as_it_is_below_the_threshold() -> None:
    store = conversation(WORDS)
    report = compacted(store, lossless(head(80), **SMALL | {"budget_tokens": 700}))
    assert report.tokens_after == 600 - (100 - 20) <= 0.75 * 700
    assert shape(store) == [0, *[None] * 10]


def test_a_turn_makes_one_leaf_and_condenses_when_enough_stand_side_by_side() -> None:
    store = conversation(WORDS[:3])
    compaction, view = lossless(head(80), **SMALL), window(store)
    shapes = []
    for number in range(4, 12):
        store.append(CONVERSATION, [message(number, "w" * 200)], Utf16Units())
        view.follow()
        run(compaction.after_turn(view, NOW, incidents=Counter()), compaction.summarizer, incidents=Counter())
        shapes.append([depth for depth in shape(store) if depth is not None])
    assert shapes == [[0], [0], [0, 0], [0, 0], [1], [1], [1, 0], [1, 0]]
    assert view.tokens == sum(entry.tokens for entry in store.context(CONVERSATION))


def test_live_tokens_of_the_host_count_against_the_threshold() -> None:
    store = conversation(["w" * 40] * 4)
    compaction = lossless(head(80), **SMALL)
    quiet = run(
        compaction.after_turn(window(store), NOW, 750, incidents=Counter()), compaction.summarizer, incidents=Counter()
    )
    loud = run(
        compaction.after_turn(window(store), NOW, 751, incidents=Counter()), compaction.summarizer, incidents=Counter()
    )
    assert (quiet.reason, loud.reason) == ("below threshold", "live context still exceeds target")


def test_the_metadata_of_summaries_says_what_they_stand_for() -> None:
    store = conversation(WORDS)
    compacted(store, lossless(head(80), **SMALL), is_forced=True)
    leaf = store.summaries()[0]
    first, second = store.messages()[:2]
    assert leaf.source_ids == (first.message_id, second.message_id)
    assert (leaf.earliest_at, leaf.latest_at) == (first.created_at, second.created_at)
    assert (leaf.source_message_token_count, leaf.descendant_count, leaf.token_count) == (100, 0, 20)
    assert (leaf.method, leaf.model, leaf.confidence, leaf.level) == ("stub", "model", 0.5, "normal")
    node = next(summary for summary in store.summaries() if summary.depth == 1)
    below = [summary for summary in store.summaries() if summary.summary_id in node.source_ids]
    assert node.descendant_count == len(below) >= 3
    assert node.descendant_token_count == 20 * len(below)
    assert node.source_message_token_count == 100 * len(below)
    assert (node.earliest_at, node.latest_at) == (below[0].earliest_at, below[-1].latest_at)


def test_a_cut_source_is_the_work_of_no_model() -> None:
    store = conversation(WORDS)
    compacted(store, lossless(Stub(lambda _: ""), **SMALL), is_forced=True)
    assert {(one.level, one.method, one.confidence) for one in store.summaries()} == {("fallback", "truncate", 0.0)}


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
        work = compaction.compact(window(store), NOW, is_forced=True, incidents=incidents)
        assert run(work, compaction.summarizer, incidents=incidents).is_compacted
    assert incidents["a summary is no smaller than its source"] == counted


@pytest.mark.parametrize(("rules", "expected"), [("original", [1, None]), ("corrected", [0, None])])
def test_one_summary_alone_is_condensed_by_the_original_where_a_fanout_of_one_says_so(
    rules: str, expected: list[int | None]
) -> None:
    """The plugin's manifest asks for two at least; its engine takes one, and would condense its own copy again."""
    store = summarised([0])
    compaction = lossless(head(80), **SMALL | {"leaf_min_fanout": 1, "condensed_min_fanout": 2, "rules": rules})
    compacted(store, compaction, is_forced=True)
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


def test_equal_summaries_of_one_instant_have_different_ids() -> None:
    store = conversation(WORDS)
    report = compacted(store, lossless(Stub(lambda _: "same"), **SMALL), is_forced=True)
    assert len(set(report.summary_ids)) == len(report.summary_ids) > 2


@pytest.mark.parametrize(("blanks", "covered"), [((), 2), ((0, 1), 3), ((0, 1, 2, 3), 5)])
def test_a_chunk_without_words_takes_in_what_follows(blanks: Sequence[int], covered: int) -> None:
    store = Store(opened_at=NOW)
    said = [message(i, "" if i - 1 in blanks else "w" * 200) for i in range(1, 13)]
    store.append(CONVERSATION, said, Utf16Units(), lambda _: "w" * 200)
    stub = head(80)
    compaction = lossless(stub, **SMALL)
    run(compaction.after_turn(window(store), NOW, incidents=Counter()), stub, incidents=Counter())
    assert len(store.summaries()[0].source_ids) >= covered
    assert all("w" in request.text for request in stub.requests)


def test_a_run_without_words_stays_as_it_is_and_no_one_is_asked() -> None:
    store = Store(opened_at=NOW)
    store.append(
        CONVERSATION,
        [message(i, "w" * 200 if i == 11 else "") for i in range(1, 13)],
        Utf16Units(),
        lambda _: "w" * 200,
    )
    stub, view = head(80), window(store)
    compaction = lossless(stub, **SMALL)
    assert (
        run(compaction.compact(view, NOW, is_forced=True, incidents=Counter()), stub, incidents=Counter()).reason
        == "nothing to compact"
    )
    store.append(CONVERSATION, [message(13, "w" * 200), message(14, "w"), message(15, "w")], Utf16Units())
    view.follow()
    report = run(compaction.compact(view, NOW, is_forced=True, incidents=Counter()), stub, incidents=Counter())
    assert report.reason == "compacted"
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
    limits = {"sweep_deadline_seconds": 1.5, "until_under_deadline_seconds": 1.5}
    compaction = lossless(head(80), **SMALL, **limits)
    report = run(
        compaction.compact(window(store), NOW, **how, incidents=Counter()),
        compaction.summarizer,
        Ticking(),
        incidents=Counter(),
    )
    assert (report.reason, len(report.summary_ids)) == ("time limit", 2)
    assert (
        run(
            compaction.compact(window(store), NOW, **how, incidents=Counter()),
            compaction.summarizer,
            incidents=Counter(),
        ).reason
        != "time limit"
    )


def test_reasons_under_a_target() -> None:
    store = conversation(WORDS)
    compaction = lossless(head(80), **SMALL)
    already = compacted(store, compaction, target_tokens=601)
    assert (already.reason, already.rounds, already.is_compacted) == ("already under target", 0, False)
    reached = compacted(store, compaction, target_tokens=300)
    assert (reached.reason, reached.is_compacted, reached.rounds) == ("compacted", True, 1)
    missed = compacted(store, compaction, target_tokens=1)
    assert missed.reason == "could not reach target"
    again = compacted(store, compaction, target_tokens=1)
    assert (again.reason, again.is_compacted, again.rounds >= 1) == ("could not reach target", False, True)


def test_the_hard_fanout_condenses_what_the_others_leave_when_a_target_is_missed() -> None:
    shapes = {}
    for rules in ("original", "corrected"):
        store = conversation(WORDS[:6])
        fields = SMALL | {"rules": rules, "leaf_min_fanout": 8}
        compacted(store, lossless(head(80), **fields), target_tokens=1)
        shapes[rules] = shape(store)
    assert shapes == {"original": [0, 0, None, None], "corrected": [1, None, None]}


@pytest.mark.parametrize(("rules", "previous"), [("original", None), ("corrected", "x" * 80)])
def test_depth_one_is_shown_the_depth_one_before_it(rules: str, previous: str | None) -> None:
    store = conversation(["w" * 200] * 24)
    stub = Stub(lambda _: "x" * 80)
    compacted(store, lossless(stub, **SMALL | {"condensed_min_fanout": 9}, rules=rules), is_forced=True)
    condensed = [request for request in stub.requests if request.depth == 1]
    assert [request.previous for request in condensed] == [None, previous]


def test_every_field_that_counts_changes_what_is_asked_for() -> None:
    changes: dict[str, Any] = {
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
    plain = asked({})
    for name, value in changes.items():
        assert asked({name: value}) != plain, name


def asked(changes: dict[str, Any]) -> list[Any]:
    """What is asked for and made over twenty turns."""
    store = conversation(["w" * 120])
    stub = Stub(lambda request: request.text[: 130 + 40 * request.depth])
    compaction, view = lossless(stub, **{**SMALL, "incremental_max_depth": 2, **changes}), window(store)
    for number in range(2, 40):
        store.append(CONVERSATION, [message(number, f"{number} " + "w" * 120)], Utf16Units())
        view.follow()
        run(compaction.after_turn(view, NOW, incidents=Counter()), stub, incidents=Counter())
    return [stub.requests, [(one.content, one.level) for one in store.summaries()]]


def test_works_side_by_side_ask_in_batches_and_report_in_order(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store = Store(opened_at=NOW)
    names = [f"c{i}" for i in range(5)]
    for place, name in enumerate(names):
        conversation(["w" * 200] * (3 + 2 * place), store, name)
    stub = head(80)
    compaction = lossless(stub, **SMALL)
    works = [compaction.compact(window(store, name), NOW, is_forced=True, incidents=Counter()) for name in names]
    reports = list(in_lockstep(works, stub, width=3, incidents=Counter()))
    assert [report.conversation_id for report in reports] == names
    assert max(stub.batches) == 3
    made = sum(len(report.summary_ids) for report in reports)
    assert caplog.text.count("context") == made


BAD: dict[str, Callable[[], Any]] = {
    "context_threshold must be in [0, 1], got 1.5": lambda: lossless(head(1), context_threshold=1.5),
    "context_threshold must be in [0, 1], got nan": lambda: lossless(head(1), context_threshold=float("nan")),
    "fresh_tail_count must be >= 0, got -1": lambda: lossless(head(1), fresh_tail_count=-1),
    "leaf_min_fanout must be >= 1, got 0": lambda: lossless(head(1), leaf_min_fanout=0),
    "incremental_max_depth must be >= -1, got -2": lambda: lossless(head(1), incremental_max_depth=-2),
    "summary_max_overage_factor must be >= 1, got nan": lambda: lossless(
        head(1), summary_max_overage_factor=float("nan")
    ),
    "min_leaf_tokens must be <= leaf_chunk_tokens (9), got 10": lambda: lossless(
        head(1), leaf_chunk_tokens=9, min_leaf_tokens=10
    ),
    "sweep_deadline_seconds must be > 0 or null, got 0": lambda: lossless(head(1), sweep_deadline_seconds=0),
    "rules must be one of: corrected, original, got '1.4.4'": lambda: lossless(head(1), rules="1.4.4"),
}


@pytest.mark.parametrize("message", BAD)
def test_a_value_out_of_range_is_refused(message: str) -> None:
    with pytest.raises(ValueError) as error:
        BAD[message]()
    assert str(error.value) == message


def test_a_zone_that_there_is_not_is_told(caplog: pytest.LogCaptureFixture) -> None:
    lossless(head(1), timezone="No/Where")
    assert "there is no time zone 'No/Where'" in caplog.text
