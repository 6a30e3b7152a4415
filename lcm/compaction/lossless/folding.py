"""One run of lossless compaction: a summary is pressed for until it is short enough, put in the place of what it was
made of, and followed by the next, in three modes: one leaf, a sweep, sweeps until the context is small enough.

A summary that fails writes nothing. Source: lossless-claw 0.6.3, where what is cut off may be longer than what it was
cut from, and, by the rules of 0.15, 0.15.3 without its deadline: `CompactionProgress.is_late` is ours. `Lossless` names
the choices beside its own.
"""

import logging
import math
from bisect import bisect_right
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from lcm.clock import EPOCH
from lcm.compaction.context_totals import ContextTotals, summary_id, totals_of
from lcm.compaction.lossless.planning import (
    SHRINKABLE_TOKENS,
    Chunk,
    LosslessSettings,
    condensation,
    condensation_at,
    counted_tokens,
    fresh_tail,
    hot_messages,
    leaf_chunk,
    leaf_from,
    raw_tokens,
)
from lcm.compaction.lossless.source_text import (
    has_words,
    source_of_messages,
    source_of_summaries,
    summary_words,
    zone_named,
)
from lcm.compaction.quality import lost_rules, rules_found, rules_of_summaries, summary_harm
from lcm.compaction.summarizer.chain import LEAF_SHARE, harmless_beginning, requested_tokens
from lcm.compaction.work import CompactionProgress
from lcm.encoding import well_formed
from lcm.errors import LcmError
from lcm.javascript import first_units, trim, utf16_length
from lcm.protocols.contract import contract_of
from lcm.records.conversation import Message
from lcm.records.summary import DIRECTIVE_MARK, Level, Summary, SummaryRequest, SummaryResult
from lcm.token_estimator import first_tokens
from lcm.transcript.rendering import stored_content, summary_text

Going = Generator[SummaryRequest, SummaryResult, None]
Made = Generator[SummaryRequest, SummaryResult, Summary | None]
"""A summary as stored; None where none was made, and the run says why."""

_log = logging.getLogger(__name__)
_STEPS_SHARE = 0.55  # a line a step says as much as what tools returned, cut short, did in half as many tokens again
_FALLBACK_UNITS = 2048
_UNITS_PER_TOKEN = 4
_WARN_FROM = 1.5
_LEAF_PREVIOUS = 2
_NEAR = 4
_MAX_ROUNDS = 10


class Pressed(NamedTuple):
    """A summary, how hard it had to be pressed for, and the last answer of the summarizer, if it was asked."""

    text: str
    level: Level
    result: SummaryResult | None


def press(
    settings: LosslessSettings,
    source: str,
    depth: int,
    previous: str | None = None,
    limit_tokens: int | None = None,
    rules: Sequence[str] = (),
    room_tokens: int | None = None,
) -> Generator[SummaryRequest, SummaryResult, Pressed]:
    """Ask plainly; if the answer is as long as the source, tightly; if that is too, cut the source.

    If the plain answer loses rules, a tight one is asked for, too; it stands if it is short enough and loses fewer.
    An empty answer is not asked for again. An answer longer than the target times the overage factor is cut there.

    Args:
        settings: the lengths.
        source: what is to be summarised.
        depth: of the summary to be made.
        previous: the summary before it.
        limit_tokens: the summary is kept below it, whatever is answered; None = it may be longer than its source.
        rules: of the source, that should not be lost.
        room_tokens: no more is asked for; None = as much as the lengths say.
    Raises:
        LcmError: the failure that the summarizer names.
    """
    source = trim(source)
    if not source:
        return Pressed("[Truncated from 0 tokens]", "fallback", None)
    size = _count(settings, source)
    too_long = max(1, size if limit_tokens is None else min(size, limit_tokens))
    share = _STEPS_SHARE if settings.rules == "corrected" else LEAF_SHARE

    def wanted(is_aggressive: bool) -> int:
        targets = (settings.leaf_target_tokens, settings.condensed_target_tokens)
        asked = requested_tokens(size, depth, is_aggressive, *targets, share)
        return asked if room_tokens is None else max(1, min(asked, room_tokens))

    request = SummaryRequest(source, wanted(False), depth, previous)
    result = yield request
    text, level = _words(result), "normal"
    is_long, lost = _count(settings, text) >= too_long, len(list(lost_rules(text, rules)))
    if text and (is_long or lost):
        tight = yield replace(request, target_tokens=wanted(True), is_aggressive=True)
        answer = "" if tight.failure and not is_long else _words(tight)
        is_better = answer and _count(settings, answer) < too_long and len(list(lost_rules(answer, rules))) < lost
        if is_long or is_better:
            result, text, level = tight, answer, "aggressive"
    if not text or _count(settings, text) >= too_long:
        return Pressed(_beginning(settings, source, size, limit_tokens), "fallback", result)
    return _capped(settings, Pressed(text, level, result), depth)  # type: ignore[arg-type]  # one of LEVELS


def _words(result: SummaryResult) -> str:
    if result.failure is not None:
        raise result.failure
    return trim(result.text)


def _count(settings: LosslessSettings, text: str) -> int:
    return settings.token_estimator.count([text])[0]


def _beginning(settings: LosslessSettings, source: str, size: int, limit_tokens: int | None) -> str:
    """The beginning of a source, with a mark; empty where nothing fits below the limit."""
    mark, most = f"\n[Truncated from {size} tokens]", settings.fallback_max_tokens
    if most is not None:
        most = most if limit_tokens is None else min(most, limit_tokens - 1)
        text = harmless_beginning(
            source, settings.token_estimator, most_tokens=most, mark=mark[1:], directive_mark=DIRECTIVE_MARK + mark
        )
        return text if limit_tokens is None or _count(settings, text) < limit_tokens else ""
    text = first_units(source, _FALLBACK_UNITS, "kept")
    return text + mark if limit_tokens is None else _cut(settings, text, mark, limit_tokens - 1) or ""


def _capped(settings: LosslessSettings, pressed: Pressed, depth: int) -> Pressed:
    target = settings.condensed_target_tokens if depth else settings.leaf_target_tokens
    size, most = _count(settings, pressed.text), math.ceil(target * settings.summary_max_overage_factor)
    if size > math.ceil(_WARN_FROM * target):
        _log.info("a summary of depth %d has %d tokens, %d were aimed at", depth, size, target)
    if size <= most:
        return pressed
    marks = (f"\n[Capped from {size} tokens to ~{most}]", f"\n[Capped to ~{most}]", "\n[Capped]", "")
    cuts = (_cut(settings, pressed.text, mark, most) for mark in marks)
    return Pressed(next((cut for cut in cuts if cut is not None), ""), "capped", pressed.result)


def _cut(settings: LosslessSettings, text: str, mark: str, most_tokens: int) -> str | None:
    """The beginning of a text with the mark behind it, within the tokens; None where the mark alone is too long."""
    if settings.rules == "0.15":
        room = max(0, most_tokens - _count(settings, mark))
        cut = first_tokens(text, room, settings.token_estimator) + mark
        return cut if _count(settings, cut) <= most_tokens else None

    def beginning(units: int) -> str:
        return first_units(text, units, "kept") + mark

    room = max(0, _UNITS_PER_TOKEN * most_tokens - utf16_length(mark))
    if _count(settings, beginning(room)) <= most_tokens:
        return beginning(room)
    fits = bisect_right(range(room), most_tokens, key=lambda units: _count(settings, beginning(units)))
    return beginning(fits - 1) if fits else None


@dataclass(slots=True, kw_only=True)
class Folding(CompactionProgress):
    """One run of lossless compaction, while it is under way: picks chunks, summarises them, replaces them."""

    settings: LosslessSettings
    configured: LosslessSettings | None = None
    """What decides what is condensed by the rules of 0.15, where `settings` are those of a model or a conversation."""
    hot: Mapping[str, int] = field(default_factory=dict)
    """The messages that stay because they are hot, and what each weighs: settled before anything is done."""
    is_capped: bool = False
    """A sweep ended since it had made as many passes as it may, or since time was up."""

    @property
    def totals(self) -> ContextTotals:
        """The context, with the words of entries counted whose tokens are not stored."""
        totals = totals_of(self.window.entries)
        if unweighed := totals.unweighed:
            messages = self.window.messages([entry.item_id for entry in unweighed if entry.is_message])
            summaries = self.window.summaries([entry.item_id for entry in unweighed if not entry.is_message])
            words = {message.message_id: stored_content(message) for message in messages}
            words |= {summary.summary_id: summary.content for summary in summaries}
            counts = self.settings.token_estimator.count(list(words.values()))
            totals.weigh(dict(zip(words, counts, strict=True)))
        return totals

    @property
    def tail(self) -> int:
        """Where the fresh tail begins."""
        return fresh_tail(self.settings, self.window)

    def settle_hot(self) -> None:
        """Find what is hot before anything is done."""
        if self.settings.hot_tokens:
            self.hot = hot_messages(self.window, self.tail, self.settings.hot_tokens, self.settings.hot_spot_heat)

    @property
    def raw_tokens(self) -> int:
        """Of what could become leaves."""
        return raw_tokens(self.totals, self.tail, sum(self.hot.values()))

    def tokens(self, live_tokens: float | None = None) -> int:
        """Of the context, or as the host counts them, where that is more."""
        return counted_tokens(self.totals, live_tokens)

    def is_above(self, live_tokens: float | None = None) -> bool:
        """Whether that is more than the threshold share of the budget."""
        return self.tokens(live_tokens) > self.settings.threshold_tokens

    @property
    def has_leaf_due(self) -> bool:
        return self.raw_tokens >= self.settings.leaf_chunk_tokens

    def one_leaf(self, *, is_forced: bool = False, previous: str | None = None) -> Going:
        """Make one leaf, then one condensed summary a depth, up to the first depth where there is nothing to do.

        Does nothing unless forced or triggered.

        Args:
            is_forced: whatever the triggers say.
            previous: what the summarizer is shown as the summary before; None = the last two before the leaf.
        """
        leaf = self.next_leaf(self.tail, is_forced=is_forced) if self._is_due(is_forced) else None
        if leaf is None:
            return
        shown = self.previous_of_leaf(leaf[0].start) if previous is None else previous
        if (yield from self.leaf(*leaf, shown)) is None:
            return
        most = self.settings.incremental_max_depth
        for depth in count() if most < 0 else range(most):
            before, fanout = self.totals.tokens, self.settings.fanout(depth)
            chunk = condensation_at(self.totals, self.settings, self.tail, depth, fanout)
            if chunk is None or self.is_late or (yield from self.condense(chunk)) is None:
                return
            if self.totals.tokens >= before:
                return

    def sweep(self, *, is_forced: bool = False, is_hard: bool = False, stop_at_tokens: int | None = None) -> Going:
        """Make leaves of all raw messages before the fresh tail, then condense, shallowest first.

        Does nothing unless forced or triggered. Unless forced it ends as soon as the context is below the threshold; by
        the rules of 0.15 leaves go on, and condensing, until summaries take no more than their share: with the fanouts
        of their depths up to `incremental_max_depth`, then with the hard one at any depth. A phase ends where a summary
        does not make the context smaller than it has been in this sweep, or where credentials are refused.

        Args:
            is_forced: whatever the triggers say, and to the end.
            is_hard: the hard fanout counts.
            stop_at_tokens: enough by the rules of 0.15, whatever the threshold; more triggers a sweep.
        """
        if self.settings.rules != "0.15":
            if self._is_due(is_forced):
                sweep = _Sweep(self, is_forced)
                yield from sweep.leaves()
                yield from sweep.condensed(is_hard=is_hard)
            return
        enough = min(self.settings.threshold_tokens, math.inf if stop_at_tokens is None else stop_at_tokens)
        if self.totals and (is_forced or self.totals.tokens > enough):
            sweep = _Sweep(self, is_forced, stop_at_tokens)
            yield from sweep.leaves()
            is_stuck = yield from sweep.condensed(is_hard=is_hard, max_depth=self.settings.incremental_max_depth)
            if not (is_stuck or self.has_failed_auth):
                yield from sweep.condensed(is_hard=True)

    def until_under(
        self, target_tokens: float | None = None, live_tokens: float | None = None
    ) -> Generator[SummaryRequest, SummaryResult, bool]:
        """Sweep, at most ten times, until the context is no larger than the target.

        Args:
            target_tokens: the target; None or not above 0 = the budget.
            live_tokens: what the host counts, where that is more than is stored.
        Returns:
            Whether the target was reached.
        """
        has_target = target_tokens is not None and 0 < target_tokens < math.inf
        target = math.floor(target_tokens) if target_tokens and has_target else self.settings.budget
        is_corrected, is_hard = self.settings.rules == "corrected", False
        size = self.tokens(live_tokens)
        if size < target:
            return True
        while self.rounds < _MAX_ROUNDS:
            self.rounds += 1
            made = len(self.summaries)
            yield from self.sweep(is_forced=True, is_hard=is_hard)
            after = self.totals.tokens
            if self.has_failed_auth or self.failure:
                return False
            if after <= target or self.is_late:
                return after <= target
            is_idle = len(self.summaries) == made or after >= size
            if is_idle and (is_hard or not is_corrected):
                return False
            is_hard, size = is_corrected, min(size, after)
        return self.totals.tokens <= target

    def _is_due(self, is_forced: bool) -> bool:
        return bool(self.totals) and (is_forced or self.is_above() or self.has_leaf_due)

    def next_leaf(self, tail: int, start: int = 0, *, is_forced: bool = False) -> tuple[Chunk, list[Message]] | None:
        """Find the oldest raw messages to summarise, from a place on; there are words among them, no guidance, and
        nothing hot.

        A chunk without words takes in what follows, until someone says something; a run without words stays as it is.
        By the rules of 0.15 it is a chunk as any other.
        """
        totals, settings = self.totals, self.settings
        while (chunk := leaf_chunk(totals, settings, tail, start, is_forced=is_forced)) is not None:
            start, stop = chunk.start, self._kept_from(chunk.start, chunk.stop)
            if stop == start or not _chunk(totals, start, stop).can_shrink(settings):
                start = stop + 1
                continue
            messages = fresh = self._messages(start, stop)
            while not (settings.rules == "0.15" or has_words(fresh, settings.rules)):
                more = self._kept_from(stop, leaf_from(totals, settings, stop, tail).stop)
                if more == stop:
                    break
                fresh, stop = self._messages(stop, more), more
                messages = [*messages, *fresh]
            else:
                return _chunk(totals, start, stop), messages
            start = stop
        return None

    def _messages(self, start: int, stop: int) -> list[Message]:
        return self.window.messages([entry.item_id for entry in self.totals[start:stop]])

    def _kept_from(self, start: int, stop: int) -> int:
        """The place of the first message that stays as it is: hot, or kept as a shard of guidance; `stop` if there is
        none."""
        window, guidance = self.window, self.settings.guidance
        ids = [entry.item_id for entry in self.totals[start:stop]]
        ids = ids[: next((place for place, one in enumerate(ids) if one in self.hot), None)]
        if contract_of(guidance).is_off:
            return start + len(ids)
        if unread := [one for one in ids if not {f"rule {one}", f"no rule {one}"} & window.attempted]:
            found = guidance.shards(window.messages(unread), window.conversation_id, self.now, incidents=self.incidents)
            kept = {shard.message_id: shard for shard in found if shard is not None}
            if kept:
                window.keep(list(kept.values()))
            window.attempted.update(f"{'rule' if one in kept else 'no rule'} {one}" for one in unread)
        return start + next((i for i, one in enumerate(ids) if f"rule {one}" in window.attempted), len(ids))

    def previous_of_leaf(self, start: int) -> str | None:
        """The last two summaries before a place."""
        before = (entry.item_id for entry in self.totals[:start][::-1] if not entry.is_message)
        words = (trim(one.content) for one in self.window.summaries([*islice(before, _LEAF_PREVIOUS)][::-1]))
        return "\n\n".join(text for text in words if text) or None

    def leaf(self, chunk: Chunk, messages: Sequence[Message], previous: str | None) -> Made:
        """Summarise raw messages; by the rules of 0.15 those without words stay, and nobody is asked."""
        settings = self.settings
        source = source_of_messages(messages, settings.rules, settings.timezone, settings.injected_context_tags)
        if settings.rules == "0.15" and not source.text:
            return None
        said_at = [message.created_at or EPOCH for message in messages]
        bare = self._bare(
            chunk,
            earliest_at=min(said_at),
            latest_at=max(said_at),
            source_message_token_count=sum(max(0, entry.tokens) for entry in chunk.entries),
            file_ids=source.file_ids,
        )
        return (yield from self._made(chunk, bare, source.text, previous, rules_found(messages), chunk.stored_tokens))

    def condense(self, chunk: Chunk) -> Made:
        """Summarise summaries of one depth."""
        sources = self.window.summaries([entry.item_id for entry in chunk.entries])
        source = source_of_summaries(sources, self.settings.rules, self.settings.timezone)
        bare = self._bare(
            chunk,
            earliest_at=min(one.earliest_at or one.created_at for one in sources),
            latest_at=max(one.latest_at or one.created_at for one in sources),
            descendant_count=sum(one.descendant_count + 1 for one in sources),
            descendant_token_count=sum(one.token_count + one.descendant_token_count for one in sources),
            source_message_token_count=sum(one.source_message_token_count for one in sources),
            file_ids=source.file_ids,
        )
        previous = self._previous_of_condensed(chunk)
        rules = rules_of_summaries([one.content for one in sources])
        return (yield from self._made(chunk, bare, source.text, previous, rules, sum(self._costs(sources))))

    def _previous_of_condensed(self, chunk: Chunk) -> str | None:
        """The nearest summary of the same depth as the one to be made. The originals have rules for one of depth 1 that
        never find any: they look for leaves before the oldest leaf."""
        if self.settings.rules != "corrected" or chunk.depth != 1:
            return None
        near = [entry for entry in self.totals[max(0, chunk.start - _NEAR) : chunk.start] if entry.depth == 1]
        return trim(self.window.summaries([near[-1].item_id])[0].content) or None if near else None

    def _bare(self, chunk: Chunk, **lineage: Any) -> Summary:
        """A summary of a chunk, without its words."""
        return Summary(
            summary_id=summary_id("", self.now),
            conversation_id=self.window.conversation_id,
            kind="condensed" if chunk.depth else "leaf",
            depth=chunk.depth,
            content="",
            token_count=0,
            created_at=self.now,
            source_ids=tuple(entry.item_id for entry in chunk.entries),
            **lineage,
        )

    def _made(
        self, chunk: Chunk, bare: Summary, source: str, previous: str | None, rules: Iterable[str], cost: int
    ) -> Made:
        """`cost` is what the sources take in a context."""
        limit = room = None
        pressed_for: Sequence[str] = ()
        if self.settings.rules == "corrected":
            limit, beside = chunk.stored_tokens, cost - self._costs([bare])[0] - 1
            room = beside if beside >= SHRINKABLE_TOKENS else limit - 1
            rules = pressed_for = list(dict.fromkeys(rules))
        try:
            pressed = yield from press(self.settings, source, chunk.depth, previous, limit, pressed_for, room)
            self.update_clock(pressed.result)
            if not pressed.text:
                self.refuse(chunk.depth)
                return None
            summary = self._worded(bare, pressed)
            harm = summary_harm(summary.content, source, rules, self._costs([summary])[0], cost, most_rules=1)
            self.incidents.update(harm.incidents)
            return self._put(chunk, summary)
        except LcmError as failure:
            self.fail(failure)
            return None

    def _costs(self, summaries: Sequence[Summary]) -> list[int]:
        """What summaries cost in a context, with what stands around their words; the originals count these alone."""
        if self.settings.rules != "corrected":
            return [summary.token_count for summary in summaries]
        zone = zone_named(self.settings.timezone) or ZoneInfo("UTC")
        return self.settings.token_estimator.count([summary_text(summary, zone) for summary in summaries])

    def _worded(self, bare: Summary, pressed: Pressed) -> Summary:
        content = well_formed(pressed.text)
        made_by = None if pressed.level == "fallback" else pressed.result
        return replace(
            bare,
            summary_id=summary_id(content, self.now),
            content=content,
            token_count=_count(self.settings, content),
            model=pressed.result.model if pressed.result else "unknown",
            level=pressed.level,
            method=made_by.method if made_by else "truncate",
            confidence=made_by.confidence if made_by else 0.0,
        )

    def _put(self, chunk: Chunk, summary: Summary) -> Summary:
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


def _chunk(totals: ContextTotals, start: int, stop: int) -> Chunk:
    """The raw messages between two places."""
    entries = totals[start:stop]
    return Chunk(start, entries, sum(map(totals.weight, entries)), 0)


class _Sweep:
    """One sweep under way.

    By the rules of 0.15 a message without stored tokens counts with those of its words.
    """

    def __init__(self, folding: Folding, is_forced: bool, stop_at_tokens: int | None = None) -> None:
        self._folding, self._settings = folding, folding.settings
        self._is_forced, self._stop_at = is_forced, stop_at_tokens
        self._is_prefix = folding.settings.rules == "0.15"
        self._tokens = self._least = folding.totals.tokens
        """Of the context, as it goes; and the fewest so far."""
        self._made = 0

    def leaves(self) -> Going:
        folding, place, previous, has_skipped = self._folding, 0, None, False
        is_forced = self._is_forced and not self._is_prefix
        while not self._is_over():
            leaf = folding.next_leaf(folding.tail, place, is_forced=is_forced)
            if leaf is None:
                return
            self._made += 1
            chunk, messages = leaf
            is_behind_gap = self._is_prefix and has_skipped and previous is None
            shown = folding.previous_of_leaf(chunk.start) if is_behind_gap else previous
            summary = yield from folding.leaf(chunk, messages, shown)
            if folding.has_failed_auth:
                return
            if summary is None:
                place, has_skipped = chunk.stop, True
                continue
            place, previous = chunk.start + 1, summary.content
            has_shrunk = self._shrinks(chunk.tokens, summary)
            if not has_shrunk or (self._is_at_stop() if self._is_prefix else self._is_below()):
                return

    def condensed(self, *, is_hard: bool, max_depth: int = -1) -> Generator[SummaryRequest, SummaryResult, bool]:
        """Returns whether to condense no further. What is `max_depth` deep is not condensed; -1 = anything is."""
        folding, configured = self._folding, self._folding.configured or self._settings
        depth = place = 0
        while self._presses():
            if self._is_over():
                return True
            totals, tail = folding.totals, fresh_tail(configured, folding.window)
            chunk = condensation(totals, configured, tail, depth, place, is_hard=is_hard, wordless=self._wordless())
            if chunk is None or 0 <= max_depth < chunk.depth:
                return False
            self._made += 1
            # What is shallower has been decided: condensing something deeper brings none of it back.
            depth, place = chunk.depth - 1, chunk.stop
            weight = sum(map(totals.weight, chunk.entries))
            summary = yield from folding.condense(chunk)
            if summary is None:
                if self._is_prefix or folding.has_failed_auth:
                    return True
                continue
            place = chunk.start + 1
            has_shrunk = self._shrinks(weight, summary)
            if not (has_shrunk or (self._is_prefix and (self._is_below() or self._is_at_stop()))):
                return True
        return False

    def _presses(self) -> bool:
        """Whether the context, or by the rules of 0.15 what is summarised of it, takes more than it may."""
        if not self._is_prefix:
            return self._is_forced or self._least > self._settings.threshold_tokens
        totals, configured = self._folding.totals, self._folding.configured or self._settings
        before = totals[: self._folding.tail]
        summarised = sum(totals.weight(entry) for entry in before if not entry.is_message)
        is_above_stop = self._stop_at is not None and not self._is_at_stop()
        return is_above_stop or summarised > configured.prefix_tokens(self._settings.threshold_tokens)

    def _wordless(self) -> set[str]:
        """The summaries that say nothing by the rules of 0.15."""
        if not self._is_prefix:
            return set()
        ids = [entry.item_id for entry in self._folding.totals if not entry.is_message]
        return {one.summary_id for one in self._folding.window.summaries(ids) if not summary_words(one, "0.15")}

    def _is_below(self) -> bool:
        return not self._is_forced and self._tokens <= self._settings.threshold_tokens

    def _is_at_stop(self) -> bool:
        return self._stop_at is not None and self._tokens <= self._stop_at

    def _is_over(self) -> bool:
        """Whether the run is; notes where it is not done."""
        most = self._settings.max_sweep_passes if self._is_prefix else None
        self._folding.is_capped = self._folding.is_late or (most is not None and self._made >= most)
        return self._folding.is_capped or self._folding.is_over

    def _shrinks(self, weight: int, summary: Summary) -> bool:
        """Count a summary in the place of what weighed so much; whether the context is smaller than it has been."""
        before, least = self._tokens, self._least
        after = max(0, before - weight + summary.token_count)
        self._tokens = after if self._is_prefix else self._folding.totals.tokens
        self._least = min(least, self._tokens)
        return self._tokens < min(before, least)
