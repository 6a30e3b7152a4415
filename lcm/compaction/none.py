"""No compaction: a context is all that was said."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.compaction.context_totals import totals_of
from lcm.errors import ModelError
from lcm.protocols.compaction import ContextWindow, Summarizer, Work
from lcm.records.summary import CompactionReport, SummaryRequest, SummaryResult


@dataclass(frozen=True, slots=True)
class NoSummaries:
    """Stands where a summarizer is expected; compaction that is off never asks it."""

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [SummaryResult("", 0.0, "none", failure=ModelError("compaction is off")) for _ in requests]


@dataclass(frozen=True, slots=True)
class NoCompaction:
    """Every work ends at once, with the reason "compaction is off"."""

    is_off = True
    reads_admission = False

    @property
    def summarizer(self) -> Summarizer:
        return NoSummaries()

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        return (yield from _nothing(window))

    def compact(
        self,
        window: ContextWindow,
        now: datetime,
        *,
        incidents: Counter[str],
        is_forced: bool = False,
        target_tokens: int | None = None,
    ) -> Work:
        return (yield from _nothing(window))


def _nothing(window: ContextWindow) -> Work:
    tokens = totals_of(window.entries).tokens
    yield from ()
    return CompactionReport(window.conversation_id, False, "compaction is off", tokens, tokens)
