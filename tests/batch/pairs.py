"""A compaction small enough to follow by hand, whose every summary depends on what was there when it was made."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from lcm.compaction.context_totals import summary_id
from lcm.protocols.compaction import ContextWindow, Work
from lcm.records.summary import CompactionReport, ContextEntry, Summary, SummaryRequest, SummaryResult


@dataclass(frozen=True, slots=True)
class Digests:
    """Says how much it was given, and the digest of that."""

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [
            SummaryResult(f"{len(one.text)} characters, {sha256(one.text.encode()).hexdigest()[:12]}", 1.0, "digests")
            for one in requests
        ]


@dataclass(frozen=True, slots=True)
class Pairs:
    """After a turn: one leaf of the oldest messages if `leaf` of them stand before the tail; then, only after a leaf,
    every two neighbouring summaries of one depth become one.

    The second step is not taken by a turn without a leaf: whoever repeats half a turn gets another DAG.
    """

    leaf: int = 3
    tail: int = 2

    @property
    def summarizer(self) -> Digests:
        return Digests()

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        before = sum(entry.tokens for entry in window.entries)
        made: list[str] = []
        raw = [entry for entry in window.entries if entry.is_message][: -self.tail or None]
        if len(raw) >= self.leaf:
            made.append((yield from self._leaf(window, raw[: self.leaf], now)))
            for depth in range(10):
                of_depth = [entry for entry in window.entries if entry.depth == depth]
                while len(of_depth) >= 2:
                    made.append((yield from self._condensed(window, of_depth[:2], depth + 1, now)))
                    of_depth = of_depth[2:]
        return self._report(window, before, made)

    def compact(
        self, window: ContextWindow, now: datetime, *, is_forced: bool = False, target_tokens: int | None = None,
        incidents: Counter[str],
    ) -> Work:  # fmt: skip
        before = sum(entry.tokens for entry in window.entries)
        made: list[str] = []
        while True:
            report = yield from self.after_turn(window, now, incidents=Counter())
            made += report.summary_ids
            if not report.is_compacted:
                return self._report(window, before, made)

    def _report(self, window: ContextWindow, before: int, made: Sequence[str]) -> CompactionReport:
        after = sum(entry.tokens for entry in window.entries)
        reason = "compacted" if made else "nothing to compact"
        return CompactionReport(window.conversation_id, bool(made), reason, before, after, tuple(made), len(made))

    def _leaf(self, window: ContextWindow, entries: Sequence[ContextEntry], now: datetime):
        messages = window.messages([entry.item_id for entry in entries])
        result = yield SummaryRequest("\n".join(message.content for message in messages), 100)
        instants = [message.created_at for message in messages if message.created_at]
        return _summarised(
            window, entries, "leaf", 0, result, now, min(instants), max(instants),
            source_message_token_count=sum(entry.tokens for entry in entries),
            source_ids=tuple(message.message_id for message in messages),
        )  # fmt: skip

    def _condensed(self, window: ContextWindow, entries: Sequence[ContextEntry], depth: int, now: datetime):
        sources = window.summaries([entry.item_id for entry in entries])
        result = yield SummaryRequest("\n".join(source.content for source in sources), 100, depth)
        return _summarised(
            window, entries, "condensed", depth, result, now,
            min(source.earliest_at for source in sources if source.earliest_at),
            max(source.latest_at for source in sources if source.latest_at),
            sum(source.descendant_count + 1 for source in sources),
            sum(source.token_count + source.descendant_token_count for source in sources),
            sum(source.source_message_token_count for source in sources),
            tuple(source.summary_id for source in sources),
        )  # fmt: skip


def _summarised(
    window: ContextWindow, entries: Sequence[ContextEntry], kind: Any, depth: int, result: SummaryResult, now: datetime,
    *more: Any, **named: Any,
) -> str:  # fmt: skip
    """Put a summary in the place of entries; returns its id."""
    told = (summary_id(result.text, now), window.conversation_id, kind, depth, result.text)
    tokens = max(1, len(result.text) // 4)
    summary = Summary(*told, tokens, now, *more, **named, method=result.method, confidence=result.confidence)
    return window.replace(entries[0].ordinal, entries[-1].ordinal, summary).summary_id
