"""Work of compaction on one conversation: what it has done so far, many of them side by side, and none.

Works are driven in lockstep, so that their requests reach the summarizer in batches.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import islice

from lcm.compaction.context_totals import ContextTotals, totals_of
from lcm.errors import AuthError, LcmError, ModelError
from lcm.protocols.compaction import ContextWindow, Summarizer, Work
from lcm.protocols.contract import Contract
from lcm.records.summary import CompactionReport, Summary, SummaryRequest, SummaryResult, TriggerReading

Clock = Callable[[], float]
"""Seconds that only rise, as `time.monotonic` tells them."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TimedResult(SummaryResult):
    """A result that says how long its work has been under way: what time limits are held against."""

    elapsed_seconds: float = 0.0


@dataclass(slots=True)
class CompactionProgress:
    """One run of compaction on one conversation, while it is under way."""

    window: ContextWindow
    now: datetime
    incidents: Counter[str]
    deadline_seconds: float | None = None
    summaries: list[Summary] = field(default_factory=list)
    rounds: int = 0
    has_failed_auth: bool = False
    failure: str = ""
    """What ended the run, where that was not the credentials."""
    elapsed_seconds: float = 0.0
    triggers: tuple[TriggerReading, ...] = ()
    """What was looked at before anything was done."""

    @property
    def totals(self) -> ContextTotals:
        return totals_of(self.window.entries)

    @property
    def is_late(self) -> bool:
        return self.deadline_seconds is not None and self.elapsed_seconds > self.deadline_seconds

    @property
    def is_over(self) -> bool:
        return bool(self.failure) or self.is_late

    def update_clock(self, result: SummaryResult | None) -> None:
        """Look at the time that an answer tells."""
        if isinstance(result, TimedResult):
            self.elapsed_seconds = result.elapsed_seconds

    def fail(self, failure: LcmError, *, is_told: bool = False) -> None:
        """Note why a pass wrote nothing.

        Args:
            failure: what was raised.
            is_told: a failure of this conversation was warned of before: this one is not.
        """
        is_auth = isinstance(failure, AuthError)
        if is_auth:
            self.has_failed_auth = True
        else:
            self.failure = str(failure)
        level = logging.INFO if is_told else logging.WARNING
        _log.log(level, "conversation %s: a pass of compaction failed: %s", self.window.conversation_id, failure)
        self.window.note(self.now, "auth failure" if is_auth else "failure", str(failure))

    def refuse(self, depth: int) -> None:
        """Note that nothing shorter than its source was to be had."""
        _log.info("conversation %s: no shorter summary of depth %d", self.window.conversation_id, depth)
        self.window.note(self.now, "refusal", f"no summary of depth {depth} that is shorter than its source")

    def report(self, tokens_before: int, reason: str) -> CompactionReport:
        """Say what the run did; `reason` counts where nothing went wrong."""
        if self.has_failed_auth:
            reason = f"provider auth failure{' after partial compaction' if self.summaries else ''}"
        return CompactionReport(
            conversation_id=self.window.conversation_id,
            is_compacted=bool(self.summaries),
            reason=reason if self.has_failed_auth else self.failure or reason,
            tokens_before=tokens_before,
            tokens_after=self.totals.tokens,
            summary_ids=tuple(summary.summary_id for summary in self.summaries),
            rounds=self.rounds,
            has_failed_auth=self.has_failed_auth,
            failure=self.failure or ("the model's server refused the credentials" if self.has_failed_auth else ""),
            triggers=self.triggers,
        )


def in_lockstep(
    works: Iterable[Work],
    summarizer: Summarizer,
    width: int = 64,
    clock: Clock | None = None,
    *,
    incidents: Counter[str],
) -> Iterator[CompactionReport]:
    """Drive works to their ends, at most `width` at a time; their reports come in the order of the works.

    Every round asks the summarizer once, for the next request of each work that is under way.

    Args:
        works: their work.
        summarizer: answers.
        width: how many are under way at once.
        clock: lets works see time pass, and so keep their time limits; without one no work is ever late.
        incidents: counts what the summarizer survives.
    """
    waiting = enumerate(works)
    reports: dict[int, CompactionReport] = {}
    pending: dict[int, tuple[Work, SummaryRequest]] = {}
    begun_at: dict[int, float] = {}
    told = 0
    while True:
        has_begun = False
        for number, work in islice(waiting, width - len(pending)):
            has_begun = True
            begun_at[number] = clock() if clock else 0.0
            _advance(number, work, None, pending, reports)
        while told in reports:
            yield reports.pop(told)
            told += 1
        if not (pending or has_begun):
            return
        asked = list(pending.items())
        results = summarizer.summarize([request for _, (_, request) in asked], incidents=incidents) if asked else []
        for (number, (work, _)), result in zip(asked, results, strict=True):
            answer = _timed(result, clock() - begun_at[number]) if clock else result
            _advance(number, work, answer, pending, reports)


def _advance(
    number: int,
    work: Work,
    answer: SummaryResult | None,
    pending: dict[int, tuple[Work, SummaryRequest]],
    reports: dict[int, CompactionReport],
) -> None:
    """Take a work to its next request, or to its report."""
    try:
        pending[number] = (work, next(work) if answer is None else work.send(answer))
    except StopIteration as end:
        pending.pop(number, None)
        reports[number] = end.value


def run(work: Work, summarizer: Summarizer, clock: Clock | None = None, *, incidents: Counter[str]) -> CompactionReport:
    """Drive one work to its end."""
    return next(in_lockstep([work], summarizer, clock=clock, incidents=incidents))


def resumed(work: Work, request: SummaryRequest) -> Work:
    """Work that has given its first request already, as work that is to give it."""
    try:
        while True:
            request = work.send((yield request))
    except StopIteration as end:
        report: CompactionReport = end.value
        return report


def _timed(result: SummaryResult, elapsed_seconds: float) -> TimedResult:
    said = {field.name: getattr(result, field.name) for field in fields(SummaryResult)}
    return TimedResult(**said, elapsed_seconds=elapsed_seconds)


@dataclass(frozen=True, slots=True)
class NoSummaries:
    """Stands where a summarizer is expected; compaction that is off never asks it."""

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [SummaryResult("", 0.0, "none", failure=ModelError("compaction is off")) for _ in requests]


@dataclass(frozen=True, slots=True)
class NoCompaction:
    """A context is all that was said: every work ends at once, with the reason "compaction is off"."""

    summarizer = NoSummaries()
    contract = Contract(is_off=True)
    reads_admission = False

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        yield from ()
        return CompactionProgress(window, now, incidents).report(totals_of(window.entries).tokens, "compaction is off")

    def compact(
        self,
        window: ContextWindow,
        now: datetime,
        *,
        incidents: Counter[str],
        is_forced: bool = False,
        target_tokens: int | None = None,
    ) -> Work:
        return self.after_turn(window, now, incidents=incidents)
