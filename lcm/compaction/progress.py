"""What one run of compaction has done so far."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lcm.compaction.context_totals import ContextTotals, totals_of
from lcm.compaction.lockstep import TimedResult
from lcm.compaction.lossless.planning import Chunk
from lcm.errors import AuthError, LcmError
from lcm.protocols.compaction import ContextWindow
from lcm.records.summary import CompactionReport, Summary, SummaryResult, TriggerReading

_log = logging.getLogger(__name__)


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
    is_capped: bool = False
    """A sweep ended since it had made as many passes as it may, or since time was up."""
    hot: Mapping[str, int] = field(default_factory=dict)
    """The messages that stay because they are hot, and what each weighs: settled before anything is done."""
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

    def make(self, chunk: Chunk, summary: Summary) -> Summary:
        """Put a summary in the place of a chunk.

        Raises:
            StoreError: if the chunk is no longer there.
        """
        before = self.totals.tokens
        stored = self.window.replace(chunk.entries[0].ordinal, chunk.entries[-1].ordinal, summary)
        self.summaries.append(stored)
        _log.info(
            "conversation %s: %s %s (%s, %s), context %d -> %d tokens",
            *(self.window.conversation_id, stored.kind, stored.summary_id, stored.level, stored.method),
            *(before, self.totals.tokens),
        )
        return stored

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


def report(progress: CompactionProgress, tokens_before: int, reason: str) -> CompactionReport:
    """Say what a run did; `reason` counts where nothing went wrong."""
    if progress.has_failed_auth:
        reason = f"provider auth failure{' after partial compaction' if progress.summaries else ''}"
    elif progress.failure:
        reason = progress.failure
    return CompactionReport(
        conversation_id=progress.window.conversation_id,
        is_compacted=bool(progress.summaries),
        reason=reason,
        tokens_before=tokens_before,
        tokens_after=progress.totals.tokens,
        summary_ids=tuple(summary.summary_id for summary in progress.summaries),
        rounds=progress.rounds,
        has_failed_auth=progress.has_failed_auth,
        failure=progress.failure or ("the model's server refused the credentials" if progress.has_failed_auth else ""),
        triggers=progress.triggers,
    )
