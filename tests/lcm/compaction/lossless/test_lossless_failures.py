"""Lossless compaction with a summarizer that fails, refuses, or makes nothing shorter."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.work import run
from lcm.errors import AuthError, ModelError
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import NOW, Stub, after_turn, compacted, conversation, head, lossless, window
from tests.lcm.compaction.lossless.test_lossless import SMALL, WORDS, shape, summarised


@dataclass
class Limited:
    """A summarizer that loses patience."""

    inner: Stub
    most: int

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        assert len(self.inner.requests) < self.most, "asked without end"
        return self.inner.summarize(requests, incidents=Counter())


def refusing() -> Stub:
    return Stub(lambda _: "", AuthError("key refused"))


def test_a_useless_summarizer_makes_the_original_grow_and_the_corrected_shrink() -> None:
    after = {}
    for rules in ("original", "corrected"):
        echo = lossless(Stub(lambda request: request.text), **SMALL, rules=rules)
        report = compacted(conversation(WORDS), echo, is_forced=True)
        after[rules] = (report.tokens_after > 600, len(report.summary_ids) > 1)
    assert after == {"original": (True, False), "corrected": (False, True)}


def test_credentials_refused_write_nothing_and_open_the_breaker() -> None:
    store, stub = conversation(WORDS), refusing()
    compaction = lossless(stub, **SMALL, circuit_breaker_threshold=2, circuit_breaker_cooldown_seconds=60)
    for _ in range(2):
        report = compacted(store, compaction, is_forced=True)
        assert (report.reason, report.has_failed_auth, report.is_compacted) == ("provider auth failure", True, False)
    asked = len(stub.requests)
    assert compacted(store, compaction, is_forced=True).reason == "circuit breaker open"
    assert (len(stub.requests), shape(store)) == (asked, [None] * 12)
    assert store.compactions()["event"].to_list() == ["auth failure", "auth failure"]
    stub.failure, stub.answer = None, head(80).answer
    later = compaction.compact(window(store), NOW + timedelta(seconds=60), is_forced=True, incidents=Counter())
    assert run(later, stub, incidents=Counter()).reason == "compacted"


def test_credentials_refused_later_keep_what_was_made() -> None:
    store, stub = conversation(WORDS), head(80)

    def once(request: SummaryRequest) -> str:
        stub.failure = AuthError("key refused")
        return request.text[:80]

    stub.answer = once
    report = compacted(store, lossless(stub, **SMALL), is_forced=True)
    assert report.reason == "provider auth failure after partial compaction"
    assert (len(report.summary_ids), shape(store)[:2]) == (1, [0, None])


@pytest.mark.parametrize("fields", [{}, {"rules": "original"}])
def test_credentials_refused_in_condensation_are_asked_for_once(fields: dict[str, Any]) -> None:
    """Two runs of leaves, with one of depth 1 between them: each could be condensed, and so could the deeper ones."""
    layout = [0, 0, 0, 1, 1, 1, 0, 0, 0]
    store, stub = summarised(layout), refusing()
    report = compacted(store, lossless(stub, **SMALL | fields), is_forced=True)
    assert (report.reason, report.has_failed_auth) == ("provider auth failure", True)
    assert [request.depth for request in stub.requests] == [1]
    assert shape(store) == [*layout, None]


def test_a_refusal_in_a_turns_leaf_that_opens_the_breaker_ends_the_turn() -> None:
    asked = {}
    for threshold in (1, 2):
        store, stub = conversation(["w" * 400] * 12), refusing()  # 1,200 tokens: leaf and sweep are due
        report = after_turn(lossless(stub, **SMALL, circuit_breaker_threshold=threshold), window(store))
        assert report.reason == "provider auth failure"
        asked[threshold] = len(stub.requests)
    assert asked == {1: 1, 2: 2}, "the sweep asks only while the breaker is closed"


def test_a_chunk_of_which_no_shorter_summary_is_to_be_had_is_not_asked_for_again() -> None:
    layout = [0, 0, 0, 1, 0, 0, 0]
    store, stub = summarised(layout, tokens=6), Stub(lambda request: request.text)
    counter = Utf16Units(1.0)  # the note that says how much was cut is longer than the 3 x 6 tokens of a run of leaves
    fields = SMALL | {"condensed_target_tokens": 1, "leaf_chunk_tokens": 60, "condensed_min_fanout": 9}
    report = compacted(store, Lossless(Limited(stub, 20), counter, **fields), is_forced=True)
    assert report.reason == "nothing to compact"
    assert len({request.text for request in stub.requests}) == 2
    assert len(stub.requests) == 2 * 2, "each of the two runs plainly, and once more tightly"
    assert shape(store) == [*layout, None]


def test_another_failure_ends_the_run_is_logged_and_noted(caplog: pytest.LogCaptureFixture) -> None:
    store, stub = conversation(WORDS), Stub(lambda _: "", ModelError("the model is gone"))
    report = compacted(store, lossless(stub, **SMALL), is_forced=True)
    assert (report.reason, report.has_failed_auth, len(stub.requests)) == ("the model is gone", False, 1)
    assert store.compactions().select("event", "detail").rows() == [("failure", "the model is gone")]
    assert "the model is gone" in caplog.text
    assert shape(store) == [None] * 12
