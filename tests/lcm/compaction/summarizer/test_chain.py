import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from lcm.compaction.summarizer.chain import Chain, Truncate, has_words
from lcm.compaction.summarizer.llm import Llm
from lcm.errors import AuthError, LcmError, ModelError, UnrecordedReplyError
from lcm.records.summary import SummaryRequest, SummaryResult
from tests.support.language_models import Replying


@dataclass
class Link:
    """Gives the outcome named after a text, or the text in brackets; keeps the texts of each batch."""

    name: str
    outcomes: dict[str, str | LcmError] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        self.batches.append([request.text for request in requests])
        return [self._result(self.outcomes.get(request.text, f"[{request.text}]")) for request in requests]

    def _result(self, outcome: str | LcmError) -> SummaryResult:
        if isinstance(outcome, LcmError):
            return SummaryResult("", 0.0, self.name, failure=outcome)
        return SummaryResult(outcome, 0.75, self.name)


@dataclass
class Raising:
    error: LcmError

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        raise self.error


def chain(*links: Any) -> Chain:
    named = {f"link{i}": link for i, link in enumerate(links, 1)}
    return Chain(named, list(named))


def asked(texts: str) -> list[SummaryRequest]:
    return [SummaryRequest(text, 96) for text in texts.split()]


def test_each_is_asked_in_one_batch_for_what_those_before_it_did_not_give(caplog: pytest.LogCaptureFixture) -> None:
    first = Link("first", {"b": ModelError("broken"), "d": ModelError("torn")})
    second = Link("second", {"d": "<pad> <pad>"})
    third = Link("third")
    summarizer = chain(first, second, third)
    incidents = Counter[str]()
    results = summarizer.summarize(asked("a b c d"), incidents=incidents)
    assert [(result.text, result.method) for result in results] == [
        ("[a]", "first"),
        ("[b]", "second"),
        ("[c]", "first"),
        ("[d]", "third"),
    ]
    assert (first.batches, second.batches, third.batches) == ([["a", "b", "c", "d"]], [["b", "d"]], [["d"]])
    assert incidents == {
        "link1 gave no summary: link2 stood in": 1,
        "link1 gave no summary: link3 stood in": 1,
        "link2 gave no summary: link3 stood in": 1,
    }
    assert [record.getMessage() for record in caplog.records] == [
        "link1 gave no summary of 2 of 4 texts: broken",
        "link2 gave no summary of 1 of 2 texts: link2 wrote no words: '<pad> <pad>'",
    ]


def test_whoever_is_not_needed_or_not_in_the_order_is_not_asked() -> None:
    named, incidents = {"one": Link("one"), "two": Link("two"), "three": Link("three")}, Counter[str]()
    summarizer = Chain(named, ["two", "three"])
    assert [one.method for one in summarizer.summarize(asked("a b"), incidents=incidents)] == ["two", "two"]
    summarizer.summarize([], incidents=incidents)
    assert named["one"].batches == named["three"].batches == []
    assert not incidents


def test_a_refused_key_leaves_it_to_the_next() -> None:
    summarizer = chain(Link("first", {"a": AuthError("no")}), Link("second"))
    incidents = Counter[str]()
    (result,) = summarizer.summarize(asked("a"), incidents=incidents)
    assert (result.text, result.failure) == ("[a]", None)
    assert incidents == {"link1 was refused: link2 stood in": 1}


def test_where_nobody_has_a_summary_the_last_failure_is_the_result() -> None:
    last = AuthError("no key")
    summarizer = chain(Link("first", {"a": ModelError("broken")}), Link("second", {"a": last}))
    incidents = Counter[str]()
    good, bad = summarizer.summarize(asked("b a"), incidents=incidents)
    assert good.failure is None
    assert (bad.text, bad.failure) == ("", last)
    assert incidents == {"link1 gave no summary: nothing stood in": 1, "link2 was refused: nothing stood in": 1}
    (padded,) = chain(Link("only", {"a": "... </s>"})).summarize(asked("a"), incidents=Counter())
    assert (padded.text, padded.confidence) == ("", 0.0)
    assert str(padded.failure) == "link1 wrote no words: '... </s>'"


def test_a_summarizer_that_cannot_work_at_all_leaves_everything_to_the_next_unless_a_reply_was_not_recorded() -> None:
    summarizer = chain(Raising(ModelError("there is no model")), Link("second"))
    incidents = Counter[str]()
    assert [result.text for result in summarizer.summarize(asked("a b"), incidents=incidents)] == ["[a]", "[b]"]
    assert incidents == {"link1 gave no summary: link2 stood in": 2}
    with pytest.raises(UnrecordedReplyError):
        chain(Raising(UnrecordedReplyError("gone")), Link("second")).summarize(asked("a"), incidents=Counter())


def test_padding_and_marks_are_no_words() -> None:
    blank = ["", " \n", "<pad><pad></s>", "<extra_id_0> .", "[PAD] [SEP]", "...", "<unk> -"]
    told = ["a", "<pad> 5 </s>", "来週", "é", "x <pad>"]
    assert [text for text in (*blank, *told) if has_words(text)] == told


def test_what_its_summarizers_survive_is_counted_too() -> None:
    summarizer = chain(Link("first", {"words": ModelError("broken")}), Llm(Replying("")))
    incidents = Counter[str]()
    summarizer.summarize(asked("words"), incidents=incidents)
    stood_in = "link1 gave no summary: link2 stood in", "llm gave no words: the beginning of the text stood in"
    assert incidents == dict.fromkeys(stood_in, 1)


def test_what_one_of_many_callers_survives_is_counted_for_it_alone() -> None:
    summarizer = chain(Raising(ModelError("there is no model")), Truncate(max_units=4, marker="..."))
    counted = [Counter[str]() for _ in range(6)]
    callers = [
        threading.Thread(target=summarizer.summarize, args=[asked("a " * size)], kwargs={"incidents": incidents})
        for size, incidents in enumerate(counted, start=40)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert counted == [{"link1 gave no summary: link2 stood in": size} for size in range(40, 46)]
