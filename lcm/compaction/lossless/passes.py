"""One leaf, or one condensed summary: read, summarised, written. A failure writes nothing.

Source: lossless-claw 0.6.3 and 0.15.3; `Lossless` names the choices beside its own.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lcm.clock import EPOCH
from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.harm import rules_found, rules_of_summaries, summary_harm
from lcm.compaction.lossless.escalation import Escalation, EscalationResult
from lcm.compaction.lossless.planning import (
    SHRINKABLE_TOKENS,
    Chunk,
    Limits,
    can_shrink,
    cut_chunk,
    leaf_chunk,
    leaf_from,
)
from lcm.compaction.lossless.prompt_time import zone_named
from lcm.compaction.lossless.source_text import ChunkText, has_words, source_of_messages, source_of_summaries
from lcm.compaction.progress import CompactionProgress
from lcm.compaction.summary_id import summary_id
from lcm.encoding import well_formed
from lcm.errors import LcmError
from lcm.javascript import trim
from lcm.protocols.compaction import ContextWindow, Guidance
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, Summary, SummaryRequest, SummaryResult
from lcm.transcript.rendering import stored_content, summary_text

Made = Generator[SummaryRequest, SummaryResult, Summary | None]
"""A summary as stored; None where none was made, and the progress says why."""

_LEAF_PREVIOUS = 2
_NEAR = 4


class LeafChunk(NamedTuple):
    """Raw messages that are to become a leaf summary."""

    chunk: Chunk
    messages: list[Message]


class SummaryLineage(NamedTuple):
    """Time span, descendants and tokens of the messages beneath a summary, as the summary's row holds them."""

    earliest_at: datetime
    latest_at: datetime
    descendant_count: int
    descendant_token_count: int
    source_message_token_count: int


@dataclass(frozen=True, slots=True)
class Passes:
    """Makes one summary of a context: picks a chunk, summarises it, replaces it."""

    limits: Limits
    escalation: Escalation
    guidance: Guidance
    token_estimator: TokenEstimator
    timezone: str
    injected_tags: Sequence[str] = ()
    """What stands between such tags in a message was put there by a host: no summarizer reads it."""

    def weighed(self, progress: CompactionProgress) -> ContextTotals:
        """The context, with the words of entries counted whose tokens are not stored."""
        totals = progress.totals
        if unweighed := totals.unweighed:
            messages = progress.window.messages([entry.item_id for entry in unweighed if entry.is_message])
            summaries = progress.window.summaries([entry.item_id for entry in unweighed if not entry.is_message])
            words = {message.message_id: stored_content(message) for message in messages}
            words |= {summary.summary_id: summary.content for summary in summaries}
            totals.weigh(dict(zip(words, self.token_estimator.count(list(words.values())), strict=True)))
        return totals

    def next_leaf(
        self, progress: CompactionProgress, tail: int, start: int = 0, *, is_forced: bool = False
    ) -> LeafChunk | None:
        """Find the oldest raw messages to summarise, from a place on; there are words among them, no guidance, and
        nothing hot.

        A chunk without words takes in what follows, until someone says something; a run without words stays as it is.
        By the rules of 0.15 it is a chunk as any other.
        """
        totals = self.weighed(progress)
        while (chunk := leaf_chunk(totals, self.limits, tail, start, is_forced=is_forced)) is not None:
            stop = self._kept_from(progress, chunk.start, chunk.stop)
            if stop == chunk.start or not can_shrink(chunk := cut_chunk(totals, chunk, stop), self.limits):
                start = stop + 1
                continue
            first = chunk.entries[0].ordinal
            is_known = totals.silence is not None and totals.silence[0] == first
            begin = totals.place(totals.silence[1] + 1) if is_known and totals.silence else chunk.start
            start = max(begin, chunk.stop)
            while True:
                messages = _read(progress.window, totals, begin, start)
                if self.limits.rules == "0.15" or has_words(messages, self.limits.rules):
                    entries = totals[chunk.start : start]
                    whole = messages if begin == chunk.start else _read(progress.window, totals, chunk.start, start)
                    return LeafChunk(Chunk(chunk.start, entries, sum(map(totals.weight, entries)), 0), whole)
                more = leaf_from(totals, self.limits, start, tail).stop
                begin, start = start, self._kept_from(progress, start, more)
                if start == begin:
                    totals.silence = (first, totals[start - 1].ordinal)
                    break
        return None

    def _kept_from(self, progress: CompactionProgress, start: int, stop: int) -> int:
        """The place of the first message that stays as it is: hot, or protected; `stop` if there is none."""
        if progress.hot:
            entries = enumerate(progress.totals[start:stop], start)
            stop = next((place for place, entry in entries if entry.item_id in progress.hot), stop)
        return self._rule_from(progress, start, stop)

    def _rule_from(self, progress: CompactionProgress, start: int, stop: int) -> int:
        """The place of the first message that guidance protects, which is kept as a shard; `stop` if there is none."""
        window, entries = progress.window, progress.totals[start:stop]
        if getattr(self.guidance, "is_off", False):
            return stop
        unread = [entry.item_id for entry in entries if not {_rule(entry), _no_rule(entry)} & window.attempted]
        messages = window.messages(unread)
        shards = self.guidance.shards(messages, window.conversation_id, progress.now, incidents=progress.incidents)
        kept = {shard.message_id: shard for shard in shards if shard is not None}
        if kept:
            window.keep(list(kept.values()))
        for entry in entries:
            if entry.item_id in unread:
                window.attempted.add(_rule(entry) if entry.item_id in kept else _no_rule(entry))
        return next((start + i for i, entry in enumerate(entries) if _rule(entry) in window.attempted), stop)

    def previous_of_leaf(self, progress: CompactionProgress, start: int) -> str | None:
        """The last two summaries before a place."""
        totals = progress.totals
        before = (place for place in range(start - 1, -1, -1) if not totals[place].is_message)
        ids = [totals[place].item_id for _, place in zip(range(_LEAF_PREVIOUS), before, strict=False)]
        words = (trim(summary.content) for summary in progress.window.summaries(ids[::-1]))
        return "\n\n".join(text for text in words if text) or None

    def leaf(self, progress: CompactionProgress, leaf: LeafChunk, previous: str | None) -> Made:
        """Summarise raw messages; by the rules of 0.15 those without words stay, and nobody is asked."""
        source = source_of_messages(leaf.messages, self.limits.rules, self.timezone, self.injected_tags)
        if self.limits.rules == "0.15" and not source.text:
            return None
        said_at = [message.created_at or EPOCH for message in leaf.messages]
        tokens = sum(max(0, entry.tokens) for entry in leaf.chunk.entries)
        lineage = SummaryLineage(min(said_at), max(said_at), 0, 0, tokens)
        rules = rules_found(leaf.messages)
        cost = sum(entry.tokens for entry in leaf.chunk.entries)
        return (yield from self._made(progress, leaf.chunk, source, previous, lineage, rules, cost))

    def condense(self, progress: CompactionProgress, chunk: Chunk) -> Made:
        """Summarise summaries of one depth."""
        sources = progress.window.summaries([entry.item_id for entry in chunk.entries])
        source = source_of_summaries(sources, self.limits.rules, self.timezone)
        lineage = SummaryLineage(
            min(one.earliest_at or one.created_at for one in sources),
            max(one.latest_at or one.created_at for one in sources),
            sum(one.descendant_count + 1 for one in sources),
            sum(one.token_count + one.descendant_token_count for one in sources),
            sum(one.source_message_token_count for one in sources),
        )
        previous = self._previous_of_condensed(progress, chunk)
        rules = rules_of_summaries([one.content for one in sources])
        cost = sum(self._costs(sources))
        return (yield from self._made(progress, chunk, source, previous, lineage, rules, cost))

    def _previous_of_condensed(self, progress: CompactionProgress, chunk: Chunk) -> str | None:
        """The nearest summary of the same depth as the one to be made. The originals have rules for one of depth 1 that
        never find any: they look for leaves before the oldest leaf."""
        if self.limits.rules != "corrected" or chunk.depth != 1:
            return None
        near = [entry for entry in progress.totals[max(0, chunk.start - _NEAR) : chunk.start] if entry.depth == 1]
        return trim(progress.window.summaries([near[-1].item_id])[0].content) or None if near else None

    def _made(
        self,
        progress: CompactionProgress,
        chunk: Chunk,
        source: ChunkText,
        previous: str | None,
        lineage: SummaryLineage,
        rules: Iterable[str],
        cost: int,
    ) -> Made:
        """`cost` is what the sources take in a context."""
        stored = sum(entry.tokens for entry in chunk.entries)
        limit: int | None = None
        room: int | None = None
        pressed_for: Sequence[str] = ()
        if self.limits.rules == "corrected":
            bare = self._summary(progress, chunk, source, EscalationResult("", "normal", None), lineage)
            beside = cost - self._costs([bare])[0] - 1
            limit, room = stored, beside if beside >= SHRINKABLE_TOKENS else stored - 1
            rules = pressed_for = list(dict.fromkeys(rules))
        try:
            pressed = yield from self.escalation.press(source.text, chunk.depth, previous, limit, pressed_for, room)
            progress.update_clock(pressed.result)
            if not pressed.text:
                progress.refuse(chunk.depth)
                return None
            summary = self._summary(progress, chunk, source, pressed, lineage)
            harm = summary_harm(summary.content, source.text, rules, self._costs([summary])[0], cost, most_rules=1)
            progress.incidents.update(harm.incidents)
            return progress.make(chunk, summary)
        except LcmError as failure:
            progress.fail(failure)
            return None

    def _costs(self, summaries: Sequence[Summary]) -> list[int]:
        """What summaries cost in a context, with what stands around their words; the originals count these alone."""
        if self.limits.rules != "corrected":
            return [summary.token_count for summary in summaries]
        zone = zone_named(self.timezone) or ZoneInfo("UTC")
        return self.token_estimator.count([summary_text(summary, zone) for summary in summaries])

    def _summary(
        self,
        progress: CompactionProgress,
        chunk: Chunk,
        source: ChunkText,
        pressed: EscalationResult,
        lineage: SummaryLineage,
    ) -> Summary:
        content = well_formed(pressed.text)
        made_by = None if pressed.level == "fallback" else pressed.result
        return Summary(
            summary_id=summary_id(content, progress.now),
            conversation_id=progress.window.conversation_id,
            kind="condensed" if chunk.depth else "leaf",
            depth=chunk.depth,
            content=content,
            token_count=self.token_estimator.count([content])[0],
            created_at=progress.now,
            **lineage._asdict(),
            source_ids=tuple(entry.item_id for entry in chunk.entries),
            file_ids=source.file_ids,
            model=pressed.result.model if pressed.result else "unknown",
            level=pressed.level,
            method=made_by.method if made_by else "truncate",
            confidence=made_by.confidence if made_by else 0.0,
        )


def _rule(entry: ContextEntry) -> str:
    return f"rule {entry.item_id}"


def _no_rule(entry: ContextEntry) -> str:
    return f"no rule {entry.item_id}"


def _read(window: ContextWindow, totals: ContextTotals, start: int, stop: int) -> list[Message]:
    return window.messages([entry.item_id for entry in totals[start:stop]])
