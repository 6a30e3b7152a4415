"""Compaction of the conversations of a workspace: after a turn, beside the turns in the background, side by side."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock, Thread

from lcm.compaction.scheduling import Asynchronous, ReplayedClock, ReplayedSummarizer
from lcm.compaction.window import PlannedWindow, StoredWindow
from lcm.compaction.work import Clock, in_lockstep, resumed, run
from lcm.errors import StoreError
from lcm.faults import is_of_machine
from lcm.memory.system import System
from lcm.protocols.compaction import Compaction
from lcm.protocols.contract import contract_of
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import CompactionReport, ContextReading, TriggerReading
from lcm.redaction import redacted
from lcm.store.store import Store

Job = Callable[[], CompactionReport]
OVERTAKEN = "background compaction dropped: another writer was faster"
ABANDONED = "background compaction dropped: it had not ended when the memory was closed"
FAILED = "background compaction failed"
UNDER_WAY = "compaction under way"
_log = logging.getLogger(__name__)
WAITS = "tokens from which a turn waits for compaction"


def _done_beside(job: Job, turn: Lock) -> Future[CompactionReport]:
    """Do a job in a thread once it is its turn; what it raises is kept for whoever asks for its result.

    A daemon: a job that never ends holds up neither the end of the process nor anybody who does not wait for it.
    """
    ended = Future[CompactionReport]()

    def work() -> None:
        with turn:
            try:
                ended.set_result(job())
            except BaseException as error:  # whatever it is: a turn that waits for the job must hear of it
                ended.set_exception(error)

    Thread(target=work, name="lcm-compaction", daemon=True).start()
    return ended


@dataclass(frozen=True, slots=True)
class _Plan:
    """Compaction of one conversation, under way."""

    window: PlannedWindow
    survived: Counter[str]
    ended: Future[CompactionReport]
    clock: ReplayedClock | None = None
    """Of the conversation, where time is simulated."""
    ready_at: float = 0.0
    """By that clock."""

    def is_ready(self) -> bool:
        return self.ended.done() if self.clock is None else self.clock.seconds >= self.ready_at

    def wait(self, seconds: float | None = None) -> CompactionReport:
        """
        Raises:
            TimeoutError: if it takes longer than so many seconds; None = however long it takes.
        """
        if self.clock is not None:
            self.clock.wait_until(self.ready_at)
        return self.ended.result(seconds)


class BackgroundCompaction:
    """Compacts conversations of one store as `Asynchronous` says; one plan a conversation is under way at most.

    With a clock, threads work on the plans, one after another. Without one, time is simulated: a plan is worked on at
    once, and what it made waits for the turn at which it would have been ready. Until then nothing is written: who is
    killed meanwhile has lost work, but no message, and plans it again.
    """

    def __init__(
        self,
        scheduling: Asynchronous,
        compaction: Compaction,
        tokens: TokenEstimator,
        store: Store,
        incidents: Counter[str],
    ) -> None:
        self._scheduling, self._compaction, self._tokens = scheduling, compaction, tokens
        self._store, self._incidents = store, incidents
        self._plans: dict[str, _Plan] = {}
        self._clocks: dict[str, ReplayedClock] = {}
        self._turn = Lock()

    def after_turn(self, live: StoredWindow, now: datetime, live_tokens: int, clock: Clock | None) -> CompactionReport:
        """Write what is ready, plan what is due, and wait where the context is full; the report tells of all of it.

        Args:
            live: the conversation, with the turn in it.
            now: when the turn ended.
            live_tokens: what the host counts.
            clock: seconds that only rise, of a live session; None = time is simulated.
        """
        name, before = live.conversation_id, live.tokens
        told = self._replayed_clock(name, now) if clock is None else clock
        began, is_full = told(), self._is_full(live, live_tokens)
        seen = TriggerReading(WAITS, max(before, live_tokens), round(self._scheduling.hard_tokens))
        reports: list[CompactionReport] = []
        if name in self._plans and (is_full or self._plans[name].is_ready()):
            reports.append(self._ended(name))
        if name not in self._plans:
            reports += self._begun(live, now, live_tokens, told)
        if name in self._plans and is_full and self._is_full(live, 0 if reports else live_tokens):
            reports.append(self._ended(name))
        joined = _joined(name, reports, before, live.tokens)
        return replace(joined, triggers=(*joined.triggers, seen), waited_seconds=told() - began)

    def settle(self) -> list[CompactionReport]:
        """Wait for all that is under way, and write it."""
        return [self._ended(name) for name in list(self._plans)]

    def close(self) -> list[CompactionReport]:
        """`settle`, but for no longer than the scheduling says; what has not ended then is dropped and counted."""
        until = time.monotonic() + self._scheduling.closing_seconds
        return [self._ended(name, max(0.0, until - time.monotonic())) for name in list(self._plans)]

    def _is_full(self, live: StoredWindow, live_tokens: int) -> bool:
        return max(live.tokens, live_tokens) >= self._scheduling.hard_tokens

    def _replayed_clock(self, name: str, now: datetime) -> ReplayedClock:
        clock = self._clocks.setdefault(name, ReplayedClock())
        clock.take_turn(self._scheduling.replayed, now)
        return clock

    def _begun(self, live: StoredWindow, now: datetime, live_tokens: int, clock: Clock) -> list[CompactionReport]:
        """Plan what is due; what needs no summarizer is done at once, and reported."""
        window, survived = PlannedWindow(live), Counter[str]()
        work = self._compaction.after_turn(window, now, live_tokens, incidents=survived)
        try:
            request = next(work)
        except StopIteration as end:
            return [self._written(window, end.value, survived)]
        window.hold()
        work, summarizer, name = resumed(work, request), self._compaction.summarizer, live.conversation_id
        if isinstance(clock, ReplayedClock):  # worked on at once, by a clock of its own
            working = ReplayedClock(clock.seconds)
            replayed = ReplayedSummarizer(summarizer, self._scheduling.replayed, self._tokens, working)
            ended = Future[CompactionReport]()
            ended.set_result(run(work, replayed, working, incidents=survived))
            self._plans[name] = _Plan(window, survived, ended, clock, working.seconds)
        else:
            ended = _done_beside(lambda: run(work, summarizer, clock, incidents=survived), self._turn)
            self._plans[name] = _Plan(window, survived, ended)
        return []

    def _ended(self, name: str, seconds: float | None = None) -> CompactionReport:
        """Wait for a plan, at most so many seconds, and write what it made; it is no longer under way then."""
        plan = self._plans.pop(name)
        try:
            report = plan.wait(seconds)
        except Exception as error:  # whatever the thread met: the turn that hears of it is not the one that failed
            if not plan.ended.done():
                return self._dropped(plan.window, ABANDONED)
            _log.warning("conversation %s: %s", name, FAILED, exc_info=error)
            self._incidents.update(plan.survived)
            return self._dropped(plan.window, f"{FAILED}: {type(error).__name__}: {redacted(str(error))}")
        return self._written(plan.window, report, plan.survived)

    def _written(self, window: PlannedWindow, report: CompactionReport, survived: Counter[str]) -> CompactionReport:
        self._incidents.update(survived)
        try:
            window.apply()
        except StoreError as error:
            if is_of_machine(error):
                raise
            _log.info("conversation %s: %s", window.conversation_id, error)
            return self._dropped(window, OVERTAKEN)
        return report

    def _dropped(self, window: PlannedWindow, why: str) -> CompactionReport:
        self._incidents[why] += 1
        return CompactionReport(window.conversation_id, False, why, window.tokens, window.tokens)


def _joined(name: str, reports: Sequence[CompactionReport], before: int, after: int) -> CompactionReport:
    """One report of a turn at which several plans ended, or none."""
    failures = [one.failure for one in reports if one.failure]
    reason = next((one.reason for one in reports if one.is_compacted), reports[-1].reason if reports else UNDER_WAY)
    return CompactionReport(
        conversation_id=name,
        is_compacted=any(one.is_compacted for one in reports),
        reason=reason,
        tokens_before=before,
        tokens_after=after,
        summary_ids=tuple(one for report in reports for one in report.summary_ids),
        rounds=sum(one.rounds for one in reports),
        has_failed_auth=any(one.has_failed_auth for one in reports),
        failure=failures[0] if failures else "",
        triggers=tuple(reading for one in reports for reading in one.triggers),
    )


class ConversationCompaction:
    """Compacts conversations of one store, each as of its last message; keeps their context windows between turns."""

    def __init__(self, system: System, store: Store, incidents: Counter[str]) -> None:
        self._system, self._store, self._incidents = system, store, incidents
        self._windows: dict[str, StoredWindow] = {}
        self._compacted: set[str] = set()
        self._fullest: dict[tuple[str, str], TriggerReading] = {}
        """By conversation and what was read."""
        self._background: BackgroundCompaction | None = None
        if isinstance(system.scheduling, Asynchronous) and not contract_of(system.compaction).is_off:
            self._background = BackgroundCompaction(
                system.scheduling, system.compaction, system.token_estimator, store, incidents
            )

    @property
    def readings(self) -> list[ContextReading]:
        """The most that each trigger saw of each context."""
        return [
            ContextReading(conversation_id, conversation_id in self._compacted, *reading)
            for (conversation_id, _), reading in self._fullest.items()
        ]

    def after_turn(self, conversation_id: str, live_tokens: int, clock: Clock | None) -> CompactionReport:
        """Compact a little, if a trigger says so; arguments as of `Memory.take_turn`."""
        compaction, now = self._system.compaction, self._store.last_said(conversation_id)
        window = self._window(conversation_id)
        if self._background is not None:
            return self._counted(self._background.after_turn(window, now, live_tokens, clock))
        began = clock() if clock else 0.0
        work = compaction.after_turn(window, now, live_tokens, incidents=self._incidents)
        report = self._counted(run(work, compaction.summarizer, clock, incidents=self._incidents))
        return replace(report, waited_seconds=clock() - began) if clock else report

    def compact(
        self, conversation_ids: Sequence[str], *, is_forced: bool, target_tokens: int | None, clock: Clock | None
    ) -> list[CompactionReport]:
        """Compact all that can be in conversations that the session rules write; arguments as of `Memory.compact`."""
        compaction = self._system.compaction
        self.settle()
        works = (
            compaction.compact(
                self._window(conversation_id),
                self._store.last_said(conversation_id),
                incidents=self._incidents,
                is_forced=is_forced,
                target_tokens=target_tokens,
            )
            for conversation_id in conversation_ids
            if self._system.session.writes(conversation_id, conversation_id)
        )
        ended = in_lockstep(works, compaction.summarizer, clock=clock, incidents=self._incidents)
        return [self._counted(report) for report in ended]

    def settle(self) -> list[CompactionReport]:
        """Wait for compaction that is under way in the background, and write what it made."""
        return [] if self._background is None else [self._counted(report) for report in self._background.settle()]

    def close(self) -> None:
        """`settle`, for no longer than the scheduling says."""
        if self._background is not None:
            for report in self._background.close():
                self._counted(report)

    def _window(self, conversation_id: str) -> StoredWindow:
        window = self._windows.get(conversation_id)
        if window is None:
            window = self._windows[conversation_id] = StoredWindow(self._store, conversation_id)
        else:
            window.follow()
        return window

    def _counted(self, report: CompactionReport) -> CompactionReport:
        name = report.conversation_id
        if report.is_compacted:
            self._compacted.add(name)
        for reading in report.triggers:
            known = self._fullest.get((name, reading.what))
            if known is None or reading.tokens > known.tokens:
                self._fullest[name, reading.what] = reading
        if report.failure:
            self._incidents[f"compaction failed: {report.failure}"] += 1
        return report
