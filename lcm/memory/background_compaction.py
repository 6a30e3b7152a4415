"""Compaction beside the turns of a session: planned at one, worked on in the background, written at a later one."""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime

from lcm.compaction.lockstep import Clock, resumed, run
from lcm.compaction.planned_window import PlannedWindow
from lcm.compaction.scheduling.asynchronous import Asynchronous
from lcm.compaction.scheduling.replayed_clock import ReplayedClock, ReplayedSummarizer
from lcm.compaction.window import StoredWindow
from lcm.errors import StoreError
from lcm.faults import is_of_machine
from lcm.memory.background_thread import BackgroundThread
from lcm.protocols.compaction import Compaction, Work
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import CompactionReport, TriggerReading
from lcm.redaction import redacted
from lcm.store.store import Store

OVERTAKEN = "background compaction dropped: another writer was faster"
ABANDONED = "background compaction dropped: it had not ended when the memory was closed"
FAILED = "background compaction failed"
UNDER_WAY = "compaction under way"
_log = logging.getLogger(__name__)
WAITS = "tokens from which a turn waits for compaction"


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

    With a clock, a thread works on the plans, one after another. Without one, time is simulated: a plan is worked on at
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
        self._thread = BackgroundThread("lcm-compaction")

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
        ended = [self._ended(name, max(0.0, until - time.monotonic())) for name in list(self._plans)]
        self._thread.close()
        return ended

    def _is_full(self, live: StoredWindow, live_tokens: int) -> bool:
        return max(live.tokens, live_tokens) >= self._scheduling.hard_tokens

    def _replayed_clock(self, name: str, now: datetime) -> ReplayedClock:
        clock = self._clocks.setdefault(name, ReplayedClock())
        clock.take_turn(self._scheduling.replayed, now)
        return clock

    def _begun(self, live: StoredWindow, now: datetime, live_tokens: int, clock: Clock) -> list[CompactionReport]:
        """Plan what is due; what needs no summarizer is done at once, and reported."""
        window, survived = PlannedWindow(self._store, live), Counter[str]()
        work = self._compaction.after_turn(window, now, live_tokens, incidents=survived)
        try:
            request = next(work)
        except StopIteration as end:
            return [self._written(window, end.value, survived)]
        window.hold()
        work, name = resumed(work, request), live.conversation_id
        if isinstance(clock, ReplayedClock):
            self._plans[name] = self._replayed(window, work, survived, clock)
        else:
            self._plans[name] = self._live(window, work, survived, clock)
        return []

    def _live(self, window: PlannedWindow, work: Work, survived: Counter[str], clock: Clock) -> _Plan:
        summarizer = self._compaction.summarizer
        ended = self._thread.submit(lambda: run(work, summarizer, clock, incidents=survived))
        return _Plan(window, survived, ended)

    def _replayed(self, window: PlannedWindow, work: Work, survived: Counter[str], clock: ReplayedClock) -> _Plan:
        """Worked on at once, by a clock of its own."""
        working = ReplayedClock(clock.seconds)
        summarizer = ReplayedSummarizer(self._compaction.summarizer, self._scheduling.replayed, self._tokens, working)
        ended = Future[CompactionReport]()
        ended.set_result(run(work, summarizer, working, incidents=survived))
        return _Plan(window, survived, ended, clock, working.seconds)

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
