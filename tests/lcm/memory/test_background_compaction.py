"""Compaction beside the turns: what it makes, when a turn waits, and what becomes of what never ends."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.compaction.guidance.scanner import ByteScanner
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.scheduling import Asynchronous, ReplayedTime
from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.errors import ModelError
from lcm.memory.conversation_compaction import ABANDONED, FAILED, OVERTAKEN, BackgroundCompaction
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.compaction import Compaction, Summarizer, Work
from lcm.records.summary import CompactionReport, SummaryRequest, SummaryResult
from lcm.retrieval.embedder.hashing import Hashing
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import NOW, Stub, head, message
from tests.lcm.memory.test_turns import CUT, NO_SMALLER, SMALL
from tests.lcm.refusals import assert_refused
from tests.support.workspaces import LINES, system, transcript

TOKENS = Utf16Units()
ENOUGH = 30.0  # seconds that a test waits for a thread, in vain only where something is broken


def lossless(summarizer: Summarizer, **changes: Any) -> Lossless:
    return Lossless(summarizer, TOKENS, **SMALL | {"sweep_deadline_seconds": None} | changes)


def clustering(summarizer: Summarizer) -> Clustering:
    guidance = ProtectedGuidance(ByteScanner())
    return Clustering(
        summarizer, guidance, TOKENS, Hashing(), target_cluster_size=4, tail_budget_tokens=8, session_token_budget=30
    )


KINDS: dict[str, Callable[[Summarizer], Compaction]] = {"lossless": lossless, "clustering": clustering}


def asynchronous(seconds_per_call: float = 0.0, hard_tokens: int = 10_000, **more: Any) -> Asynchronous:
    time = ReplayedTime(1.0, seconds_per_call, float("inf"), float("inf"))
    return Asynchronous(hard_tokens, 1.0, replayed=time, **more)


class Watched:
    """A compaction that notes at which turns it was asked."""

    def __init__(self, compaction: Compaction) -> None:
        self.compaction = compaction
        self.asked: list[int] = []
        self.turn = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compaction, name)

    def after_turn(self, *window: Any, **how: Any) -> Work:
        self.asked.append(self.turn)
        return self.compaction.after_turn(*window, **how)


@dataclass
class Session:
    """A conversation that is compacted beside its turns, in simulated time."""

    scheduling: Asynchronous
    compaction: Compaction
    store: Store = field(default_factory=lambda: Store(opened_at=NOW))
    reports: list[CompactionReport] = field(default_factory=list)
    incidents: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.watched = Watched(self.compaction)
        self.background = BackgroundCompaction(self.scheduling, self.watched, TOKENS, self.store, self.incidents)
        self.window = StoredWindow(self.store, "c")

    def say(self, texts: Sequence[str]) -> "Session":
        for text in texts:
            self.watched.turn += 1
            number = self.watched.turn
            self.store.append("c", [message(number, text)], TOKENS)
            self.window.follow()
            report = self.background.after_turn(self.window, message(number, "").created_at or NOW, 0, None)
            assert report.tokens_after == sum(entry.tokens for entry in self.store.context("c")) == self.window.tokens
            self.reports.append(report)
        return self

    def waits(self) -> list[float]:
        return [report.waited_seconds for report in self.reports]


def compacted_at(turns: Sequence[int], texts: Sequence[str], compaction: Compaction) -> tuple[Store, Counter[str]]:
    """A conversation that was compacted at these of its turns, each time to the end, and what was survived."""
    store, incidents = Store(opened_at=NOW), Counter[str]()
    window = StoredWindow(store, "c")
    for number, text in enumerate(texts, 1):
        said = message(number, text)
        store.append("c", [said], TOKENS)
        window.follow()
        if number in turns:
            work = compaction.after_turn(window, said.created_at or NOW, incidents=incidents)
            run(work, compaction.summarizer, incidents=incidents)
    return store, incidents


def kept(store: Store) -> object:
    """All that compaction writes."""
    return store.context("c"), store.summaries("c"), store.compactions().rows(), store.retired("c")


ANSWERS: dict[str, Callable[[SummaryRequest], str]] = {
    "head": lambda request: request.text[:40],
    "echo": lambda request: request.text,
    "longer": lambda request: request.text * 2,
    "continued": lambda request: f"{request.previous or ''}|{len(request.text)}",
    "empty": lambda request: "",
}
TEXTS = st.lists(
    st.builds(
        lambda word, times: word * times, st.sampled_from(["word ", "茶", "You must always test. "]), st.integers(1, 20)
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(
    texts=TEXTS,
    seconds=st.floats(0, 9),
    hard=st.integers(1, 400),
    share=st.sampled_from([0.0, 1.0, 1.0]),
    who=st.sampled_from(sorted(ANSWERS)),
)
def test_what_is_made_is_what_compaction_makes_at_the_turns_at_which_it_was_planned(
    kind: str, texts: list[str], seconds: float, hard: int, share: float, who: str
) -> None:
    stub = Stub(ANSWERS[who])
    session = Session(replace(asynchronous(seconds, hard), hard_threshold=share), KINDS[kind](stub)).say(texts)
    for report in session.reports:  # a turn waits only where the context is full
        assert report.waited_seconds >= 0
        assert not report.waited_seconds or report.tokens_before >= hard * share
    if share == 0:  # every turn waits for its own compaction
        assert session.watched.asked == list(range(1, len(texts) + 1))
        assert sum(session.waits()) == pytest.approx(seconds * len(stub.requests))
    session.background.settle()
    alike, survived = compacted_at(session.watched.asked, texts, KINDS[kind](Stub(ANSWERS[who])))
    assert kept(session.store) == kept(alike)
    assert session.incidents == survived


FULL_TURNS = ["word " * 19] * 7
"""Of 24 tokens each: the third leaves a chunk before the tail of two."""


def test_a_plan_is_written_at_the_turn_at_which_it_is_ready() -> None:
    """Its leaf takes 2.5 turns."""
    session = Session(asynchronous(2.5), lossless(head(40))).say(FULL_TURNS)
    assert [report.is_compacted for report in session.reports[:6]] == [False] * 5 + [True]
    assert session.watched.asked[:4] == [1, 2, 3, 6]
    assert session.waits() == [0.0] * 7


def test_a_turn_at_the_hard_threshold_waits_for_what_is_left_of_the_plan() -> None:
    """The plan of the third turn would end 2.5 s after it; the fourth, a second later, is full."""
    session = Session(asynchronous(2.5, hard_tokens=4 * 24), lossless(head(40))).say(FULL_TURNS[:4])
    assert session.waits() == [0.0, 0.0, 0.0, 1.5]
    assert session.reports[3].is_compacted


def test_time_passes_as_messages_are_dated_where_nothing_else_is_said() -> None:
    """A turn every seven minutes."""
    dated = replace(asynchronous(), replayed=ReplayedTime(None, 421.0))
    session = Session(dated, lossless(head(40))).say(FULL_TURNS[:5])
    assert [report.is_compacted for report in session.reports] == [False, False, False, False, True]


def test_reading_and_writing_take_time() -> None:
    read, written = SummaryRequest("x" * 400, 10, previous="y" * 40), SummaryResult("z" * 80, 1.0, "stub")
    took = ReplayedTime(None, 2.0, 50.0, 10.0).of_call(read, written, TOKENS)
    assert took == 2.0 + (100 + 10) / 50 + 20 / 10


def live(summarizer: Summarizer, **scheduling: Any) -> System:
    scheduling = {"hard_tokens": 10_000} | scheduling
    return replace(system(), compaction=lossless(summarizer), scheduling=asynchronous(**scheduling))


LONG = [f"{line}. {line}, as I said before" for line in LINES * 2]


def turns(*memories: Memory, lines: Sequence[str] = LONG, start: int = 0) -> list[CompactionReport]:
    """Say the lines from `start` on, two at a time, to each memory in turn."""
    said = transcript(lines).messages
    listening = cycle(memories)
    return [
        next(listening).take_turn("talk", said[i : i + 2], clock=time.monotonic) for i in range(start, len(said), 2)
    ]


def assert_every_message_is_reached_once(store: Store) -> None:
    """Each message stands in the context or in one summary alone."""
    reached = [entry.item_id for entry in store.context("talk") if entry.is_message]
    covered = store.edges("talk").filter("is_message")["source_id"].to_list()
    assert covered
    assert sorted(reached + covered) == sorted(said.message_id for said in store.messages("talk"))


@dataclass
class Held:
    """A summarizer that answers when it is let."""

    let: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        self.asked.set()
        assert self.let.wait(ENOUGH)
        return head(40).summarize(requests, incidents=incidents)


def test_a_live_turn_does_not_wait_for_the_summarizer() -> None:
    summarizer = Held()
    with Memory.open(live(summarizer)) as memory:
        assert not any(report.is_compacted for report in turns(memory))
        assert summarizer.asked.wait(ENOUGH)
        assert memory.store.summaries("talk") == []
        summarizer.let.set()
        memory.settle()
        (first, *_) = memory.store.summaries("talk")
        assert first.source_ids[0] == "talk:0"
        assert len(memory.store.messages("talk")) == len(LONG)


def test_a_live_turn_waits_at_the_hard_threshold() -> None:
    summarizer = Held()
    with Memory.open(live(summarizer, hard_tokens=50)) as memory:
        threading.Timer(0.2, summarizer.let.set).start()
        reports = turns(memory)
        assert any(report.is_compacted and report.waited_seconds > 0 for report in reports)


def test_a_forced_compaction_waits_for_what_is_under_way() -> None:
    summarizer = Held()
    with Memory.open(live(summarizer)) as memory:
        turns(memory)
        summarizer.let.set()
        (report,) = memory.compact(is_forced=True)
        assert report.is_compacted
        made = memory.store.compactions()["summary_id"].to_list()
        assert len(made) > len(report.summary_ids)
        assert tuple(made[-len(report.summary_ids) :]) == report.summary_ids
        assert set(memory.incidents) == {CUT, NO_SMALLER}


def test_closing_writes_what_ends_in_time(tmp_path: Path) -> None:
    summarizer = Held()
    with Memory.open(live(summarizer), tmp_path / "talk.db") as memory:
        turns(memory)
        summarizer.let.set()
    with Store(tmp_path / "talk.db") as store:
        assert store.summaries("talk")


def test_closing_abandons_what_hangs_and_the_next_memory_plans_it_again(tmp_path: Path) -> None:
    summarizer = Held()
    with Memory.open(live(summarizer, closing_seconds=0.05), tmp_path / "talk.db") as memory:
        turns(memory)
    assert memory.incidents == {ABANDONED: 1}
    summarizer.let.set()
    with Memory.open(live(head(40)), tmp_path / "talk.db") as memory:
        assert memory.store.summaries("talk") == []
        turns(memory, lines=LONG * 2, start=len(LONG))
        memory.settle()
        assert memory.store.summaries("talk")


@dataclass
class Raising:
    """A summarizer that breaks its contract."""

    error: BaseException

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        incidents["asked"] += 1
        raise self.error


def test_what_the_thread_raises_is_counted_and_nothing_is_written() -> None:
    for error in (RuntimeError("no"), ModelError("gone"), TimeoutError("late")):
        with Memory.open(live(Raising(error))) as memory:
            turns(memory)
            memory.settle()
            failed = f"{FAILED}: {type(error).__name__}: {error}"
            assert memory.incidents[failed] == memory.incidents["asked"] > 0
            assert memory.store.summaries("talk") == []
            assert len(memory.store.context("talk")) == len(LONG)


def test_a_failure_that_the_summarizer_tells_is_counted_as_in_a_turn_that_waits() -> None:
    with Memory.open(live(Stub(lambda _: "", failure=ModelError("the server is gone")))) as memory:
        turns(memory)
        memory.settle()
        assert memory.incidents["compaction failed: the server is gone"] > 0
        assert set(memory.store.compactions()["event"]) == {"failure"}


def test_a_plan_that_another_memory_has_overtaken_is_dropped_whole_and_made_again(tmp_path: Path) -> None:
    path, slow = tmp_path / "talk.db", Held()
    with Memory.open(live(slow), path) as one, Memory.open(live(head(40)), path) as other:
        turns(one)
        assert slow.asked.wait(ENOUGH)
        other.compact(["talk"], is_forced=True)
        made = other.store.context("talk")
        slow.let.set()
        one.settle()
        assert one.incidents[OVERTAKEN] == 1
        assert one.store.context("talk") == made
        turns(one, lines=LONG * 2, start=len(LONG))
        one.settle()
        assert one.incidents[OVERTAKEN] == 1
        assert_every_message_is_reached_once(one.store)


def test_settings_out_of_range_and_a_scheduling_of_another_kind_are_refused() -> None:
    assert_refused(Asynchronous, "be in [0, 1]", hard_threshold=-0.1)
    assert_refused(Asynchronous, "be >= 1", budget_tokens=0)
    assert_refused(Asynchronous, "be >= 0", closing_seconds=-1)
    with pytest.raises(TypeError, match="scheduling must be"):
        replace(system(), scheduling="asynchronous")
