"""Compaction of the conversations of a workspace: after a turn, and side by side."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lcm.compaction.lockstep import Clock, in_lockstep, run
from lcm.compaction.scheduling.asynchronous import Asynchronous
from lcm.compaction.window import StoredWindow
from lcm.memory.background_compaction import BackgroundCompaction
from lcm.memory.system import System
from lcm.records.summary import CompactionReport, ContextReading, TriggerReading
from lcm.store.store import Store


class ConversationCompaction:
    """Compacts conversations of one store, each as of its last message; keeps their context windows between turns."""

    def __init__(self, system: System, store: Store, incidents: Counter[str]) -> None:
        self._system, self._store, self._incidents = system, store, incidents
        self._windows: dict[str, StoredWindow] = {}
        self._compacted: set[str] = set()
        self._fullest: dict[tuple[str, str], TriggerReading] = {}
        """By conversation and what was read."""
        self._background: BackgroundCompaction | None = None
        if isinstance(system.scheduling, Asynchronous) and not system.compaction.is_off:
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
