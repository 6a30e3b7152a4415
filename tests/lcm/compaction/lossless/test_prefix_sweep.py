"""Sweeps and decisions by the rules of lossless-claw 0.15; golden vectors hold its numbers."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lcm.compaction.lossless.folding import Folding
from lcm.compaction.lossless.lossless import Decision, decide
from lcm.compaction.work import run
from lcm.errors import AuthError
from lcm.records.summary import SummaryRequest
from lcm.store.store import Store
from tests.lcm.compaction.contexts import NOW, Stub, after_turn, compacted, conversation, head, lossless, window

SMALL: dict[str, Any] = {
    "rules": "0.15",
    "budget_tokens": 1000,
    "context_threshold": 0.4,
    "fresh_tail_count": 2,
    "leaf_chunk_tokens": 100,
    "min_leaf_tokens": 0,
    "leaf_min_fanout": 9,
    "condensed_target_tokens": 20,
}
WORDS = ["w" * 200] * 12
"""Twelve messages of 50 tokens, two of which make a leaf."""


def depths(store: Store) -> list[int | None]:
    return [entry.depth for entry in store.context("c")]


def decided(store: Store, summarizer: Stub | None = None, **how: Any) -> Decision:
    compaction = lossless(summarizer or head(40), **SMALL)
    folding = Folding(window(store), NOW, Counter(), settings=compaction)
    return run(decide(folding, **{"to_threshold": True} | how), compaction.summarizer, incidents=Counter())


def test_a_sweep_folds_all_that_is_old_though_it_reaches_the_threshold_before() -> None:
    with conversation(WORDS) as store:
        report = compacted(store, lossless(head(40), **SMALL))
        assert depths(store) == [0, 0, 0, 0, 0, None, None]
        assert (report.reason, report.rounds, report.tokens_before) == ("compacted", 1, 600)


@pytest.mark.parametrize(
    ("most", "left"), [(200, [0, 0, 0, 0, 0]), (199, [1, 0, 0, 0]), (159, [1, 1, 0]), (119, [2, 0])]
)
def test_summaries_are_condensed_until_they_are_few_with_the_hard_fanout_at_any_depth(
    most: int, left: list[int]
) -> None:
    with conversation(WORDS) as store:
        compacted(store, lossless(head(160), **SMALL, summary_prefix_target_tokens=most))
        assert depths(store) == [*left, None, None]


def test_a_sweep_makes_no_more_summaries_than_it_may_and_the_next_goes_on() -> None:
    with conversation(WORDS) as store:
        compaction = lossless(head(40), **SMALL, max_sweep_passes=2)
        assert len(compacted(store, compaction, is_forced=True).summary_ids) == 2
        assert len(compacted(store, compaction, is_forced=True).summary_ids) == 2


def test_messages_without_words_stay_and_what_is_behind_them_is_folded() -> None:
    blank = "A" * 400
    with conversation([blank, *WORDS]) as store:
        summarizer = head(40)
        compacted(store, lossless(summarizer, **SMALL), is_forced=True)
        assert depths(store) == [None, 0, 0, 0, 0, 0, None, None]
        assert [request.previous is None for request in summarizer.requests] == [True, False, False, False, False]


def test_nothing_is_compacted_below_the_threshold_however_much_is_raw() -> None:
    with conversation(WORDS[:8]) as store:
        assert after_turn(lossless(head(40), **SMALL), window(store), 0).reason == "below threshold"
        assert not compacted(store, lossless(head(40), **SMALL)).is_compacted
        assert after_turn(lossless(head(40), **SMALL), window(store), 401).is_compacted


def test_what_a_host_counts_besides_lowers_the_target() -> None:
    with conversation(WORDS) as store:
        found = decided(store, live_tokens=700)
        assert (found.overhead_tokens, found.target_tokens, found.is_projected) == (100, 300, True)
    with conversation(WORDS) as store:
        assert decided(store).target_tokens == 400


def test_sweeps_follow_one_another_while_they_help() -> None:
    with conversation(WORDS) as store:
        found = decided(store, head(320))  # five leaves of 80 tokens and the tail; two are too large to be condensed
        assert (found.reason, found.rounds) == ("compacted but still over target", 2)
    with conversation(WORDS) as store:
        assert decided(store, head(320), is_manual=True, to_threshold=False).reason == "compacted"


def once_then_refused(stub: Stub) -> Callable[[SummaryRequest], str]:
    def answer(request: SummaryRequest) -> str:
        stub.failure = AuthError("no")
        return request.text[:40]

    return answer


def test_a_refusal_of_credentials_is_told_with_whether_anything_was_done() -> None:
    with conversation(WORDS) as store:
        refused = Stub(lambda request: "", AuthError("no"))
        assert decided(store, refused).reason == "provider auth failure"
        refused.failure, refused.answer = None, once_then_refused(refused)
        assert decided(store, refused).reason == "provider auth failure after partial compaction"


def test_a_run_for_a_model_decides_by_its_own_numbers_but_condenses_as_configured() -> None:
    compaction = lossless(head(160), **SMALL, summary_prefix_target_tokens=199)
    with conversation(WORDS) as store:
        for own in ({"context_threshold": 0.9}, {"fresh_tail_count": 4, "leaf_chunk_tokens": 50}):
            assert depths(store) == [None] * 12
            called = replace(compaction, **own)  # type: ignore[arg-type]
            folding = Folding(window(store), NOW, Counter(), settings=called, configured=compaction)
            run(decide(folding, to_threshold=True), compaction.summarizer, incidents=Counter())
        assert depths(store) == [1, 1, 1, 1, None, None, None, None]


def test_compaction_that_is_called_for_a_model_decides_by_its_own_numbers() -> None:
    compaction = lossless(head(160), **SMALL, summary_prefix_target_tokens=199)
    with conversation(WORDS) as store:
        assert not compacted(store, compaction.called(context_threshold=0.9)).is_compacted
        compacted(store, compaction.called(fresh_tail_count=4, leaf_chunk_tokens=50))
        assert depths(store) == [1, 1, 1, 1, None, None, None, None]
    assert compaction.called() == compaction
