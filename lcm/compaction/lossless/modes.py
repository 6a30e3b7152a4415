"""How far one run of compaction goes: one leaf, a sweep, or sweeps until the context is small enough.

Source: lossless-claw 0.6.3. By the rules of 0.15 its sweep is `PrefixSweep`, which goes on condensing until the
summaries before the fresh tail are few enough; 0.15.3 without its deadline: `CompactionProgress.is_late` is ours.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from itertools import count
from typing import Self

from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.lossless.fresh_tail import FreshTail
from lcm.compaction.lossless.hot_spots import HotSpots
from lcm.compaction.lossless.passes import Passes
from lcm.compaction.lossless.planning import (
    CompactionTrigger,
    Limits,
    condensation,
    condensation_at,
    leaf_trigger,
    threshold_trigger,
)
from lcm.compaction.lossless.source_text import summary_words
from lcm.compaction.progress import CompactionProgress
from lcm.records.summary import Summary, SummaryRequest, SummaryResult, TriggerReading


@dataclass(slots=True)
class PrefixSweep:
    """One sweep under way: leaves of all raw messages before the tail, then two loops of condensing while summaries
    take more than their share: with the fanouts of their depths, then with the hard one, at any depth.

    A message without stored tokens counts with those of its words. The limits and the tail that are `configured` decide
    what is condensed, those of the call what becomes a leaf, and when it is enough.
    """

    progress: CompactionProgress
    passes: Passes
    limits: Limits
    tail: FreshTail
    configured: tuple[Limits, FreshTail]
    is_forced: bool
    is_hard: bool
    max_depth: int
    """The first loop condenses nothing that is so deep; -1 = anything."""
    max_passes: int | None
    stop_at_tokens: int | None
    """Enough, whatever the threshold."""
    tokens: int = 0
    """Of the context, as it goes."""
    least: int = 0
    made: int = 0

    def run(self) -> Generator[SummaryRequest, SummaryResult, None]:
        """Leaves, then condensed summaries."""
        self.tokens = self.least = self.passes.weighed(self.progress).tokens
        yield from self._leaves()
        is_stuck = yield from self._condensed(is_hard=self.is_hard, max_depth=self.max_depth)
        if not (is_stuck or self.progress.has_failed_auth):
            yield from self._condensed(is_hard=True, max_depth=-1)

    def _leaves(self) -> Generator[SummaryRequest, SummaryResult, None]:
        place, previous, has_skipped = 0, None, False
        while not self._is_over():
            leaf = self.passes.next_leaf(self.progress, self.tail.start(self.progress.window), place)
            if leaf is None:
                return
            self.made += 1
            if previous is None and has_skipped:
                shown = self.passes.previous_of_leaf(self.progress, leaf.chunk.start)
            else:
                shown = previous
            summary = yield from self.passes.leaf(self.progress, leaf, shown)
            if self.progress.has_failed_auth:
                return
            if summary is None:
                place, has_skipped = leaf.chunk.stop, True
                continue
            previous = summary.content
            if not self._shrinks(leaf.chunk.tokens, summary) or self._is_at_stop():
                return

    def _condensed(self, *, is_hard: bool, max_depth: int) -> Generator[SummaryRequest, SummaryResult, bool]:
        """Returns whether to condense no further."""
        limits, tail = self.configured
        while self._presses():
            if self._is_over():
                return True
            totals = self.passes.weighed(self.progress)
            start = tail.start(self.progress.window)
            chunk = condensation(totals, limits, start, is_hard=is_hard, wordless=self._wordless())
            if chunk is None or 0 <= max_depth < chunk.depth:
                return False
            self.made += 1
            weight = sum(map(totals.weight, chunk.entries))
            summary = yield from self.passes.condense(self.progress, chunk)
            if summary is None:
                return True
            has_shrunk = self._shrinks(weight, summary)
            is_enough = not self.is_forced and self.tokens <= self.limits.threshold_tokens
            if not (has_shrunk or is_enough or self._is_at_stop()):
                return True
        return False

    def _presses(self) -> bool:
        """Whether the context, or what is summarised of it, takes more than it may."""
        totals = self.passes.weighed(self.progress)
        before = totals[: self.tail.start(self.progress.window)]
        summarised = sum(totals.weight(entry) for entry in before if not entry.is_message)
        most = self.configured[0].prefix_tokens(self.limits.threshold_tokens)
        return (self.stop_at_tokens is not None and not self._is_at_stop()) or summarised > most

    def _wordless(self) -> set[str]:
        ids = [entry.item_id for entry in self.progress.totals if not entry.is_message]
        return {one.summary_id for one in self.progress.window.summaries(ids) if not summary_words(one, "0.15")}

    def _is_at_stop(self) -> bool:
        return self.stop_at_tokens is not None and self.tokens <= self.stop_at_tokens

    def _is_over(self) -> bool:
        """Whether the run is; notes where it is not done."""
        self.progress.is_capped = self.progress.is_late or (
            self.max_passes is not None and self.made >= self.max_passes
        )
        return self.progress.is_capped or self.progress.is_over

    def _shrinks(self, weight: int, summary: Summary) -> bool:
        """Count a summary in the place of what weighed so much; whether the context is smaller than it has been."""
        before, least = self.tokens, self.least
        self.tokens = max(0, before - weight + summary.token_count)
        self.least = min(least, self.tokens)
        return self.tokens < min(before, least)


Going = Generator[SummaryRequest, SummaryResult, None]

TAIL_GROWTH = "tokens that its fresh tail grew by"
HOT_TOKENS = "tokens that may stay because they are hot"
_MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Modes:
    """The three ways in which lossless compaction goes through a context."""

    limits: Limits
    tail: FreshTail
    hot_spots: HotSpots
    passes: Passes
    incremental_max_depth: int
    max_sweep_passes: int | None = None
    """Of one sweep by the rules of 0.15; None = as many as there are."""
    configured: tuple[Limits, FreshTail] | None = None
    """What decides what is condensed, where `limits` and `tail` are those of a model or a conversation."""

    def called(
        self,
        context_threshold: float | None = None,
        fresh_tail_count: int | None = None,
        leaf_chunk_tokens: int | None = None,
    ) -> Self:
        """As for a model or a conversation that has settings of its own; None = as configured."""
        limits = replace(
            self.limits,
            context_threshold=self.limits.context_threshold if context_threshold is None else context_threshold,
            leaf_chunk_tokens=leaf_chunk_tokens or self.limits.leaf_chunk_tokens,
        )
        tail = replace(self.tail, count=fresh_tail_count or self.tail.count)
        passes = replace(self.passes, limits=limits)
        return replace(self, limits=limits, tail=tail, passes=passes, configured=(self.limits, self.tail))

    def begun(self, progress: CompactionProgress) -> ContextTotals:
        """The context before anything is done; what is hot in it is settled for the whole run."""
        totals = self.passes.weighed(progress)
        if self.hot_spots.tokens:
            progress.hot = self.hot_spots.kept(progress.window, self.tail.start(progress.window))
        return totals

    def kept_readings(self, progress: CompactionProgress) -> tuple[TriggerReading, ...]:
        """What stays for another reason than that it is among the last messages, where anything may."""
        grown = TriggerReading(TAIL_GROWTH, self.tail.grown_tokens(progress.window), None)
        hot = TriggerReading(HOT_TOKENS, sum(progress.hot.values()), self.hot_spots.tokens)
        grows = self.tail.max_count is not None
        return (*([grown] if grows else []), *([hot] if self.hot_spots.tokens else []))

    def leaf_due(self, progress: CompactionProgress) -> CompactionTrigger:
        """What the trigger of a leaf sees."""
        totals, hot_tokens = self.passes.weighed(progress), sum(progress.hot.values())
        return leaf_trigger(totals, self.limits, self.tail.start(progress.window), hot_tokens)

    def one_leaf(self, progress: CompactionProgress, *, is_forced: bool = False, previous: str | None = None) -> Going:
        """Make one leaf, then one condensed summary a depth, up to the first depth where there is nothing to do.

        Does nothing unless forced or triggered.

        Args:
            progress: the run.
            is_forced: whatever the triggers say.
            previous: what the summarizer is shown as the summary before; None = the last two before the leaf.
        """
        if not self._is_due(progress, is_forced=is_forced):
            return
        leaf = self.passes.next_leaf(progress, self.tail.start(progress.window), is_forced=is_forced)
        if leaf is None:
            return
        shown = self.passes.previous_of_leaf(progress, leaf.chunk.start) if previous is None else previous
        if (yield from self.passes.leaf(progress, leaf, shown)) is None:
            return
        for depth in count() if self.incremental_max_depth < 0 else range(self.incremental_max_depth):
            totals = self.passes.weighed(progress)
            before, fanout = totals.tokens, self.limits.fanout(depth, is_hard=False)
            chunk = condensation_at(totals, self.limits, self.tail.start(progress.window), depth, fanout=fanout)
            if chunk is None or progress.is_late or (yield from self.passes.condense(progress, chunk)) is None:
                return
            if progress.totals.tokens >= before:
                return

    def sweep(
        self,
        progress: CompactionProgress,
        *,
        is_forced: bool = False,
        is_hard: bool = False,
        stop_at_tokens: int | None = None,
    ) -> Going:
        """Make leaves of all raw messages before the fresh tail, then condense, shallowest first.

        Does nothing unless forced or triggered. Unless forced it ends as soon as the context is below the threshold.
        A phase ends where a summary does not make the context smaller than it has been in this sweep, or where
        credentials are refused.

        Args:
            progress: the run.
            is_forced: whatever the triggers say, and to the end.
            is_hard: the hard fanout counts.
            stop_at_tokens: enough by the rules of 0.15, whatever the threshold; more triggers a sweep.
        """
        if self.limits.rules == "0.15":
            yield from self._prefix_sweep(progress, is_forced, is_hard, stop_at_tokens)
        elif self._is_due(progress, is_forced=is_forced):
            least = yield from self._leaves(progress, is_forced=is_forced)
            yield from self._condensed(progress, least, is_forced=is_forced, is_hard=is_hard)

    def until_under(
        self, progress: CompactionProgress, target_tokens: float | None = None, live_tokens: float | None = None
    ) -> Generator[SummaryRequest, SummaryResult, bool]:
        """Sweep, at most ten times, until the context is no larger than the target.

        Args:
            progress: the run.
            target_tokens: the target; None or not above 0 = the budget.
            live_tokens: what the host counts, where that is more than is stored.
        Returns:
            Whether the target was reached.
        """
        has_target = target_tokens is not None and 0 < target_tokens < math.inf
        target = math.floor(target_tokens) if target_tokens and has_target else self.limits.budget_tokens
        size = threshold_trigger(self.passes.weighed(progress), self.limits, live_tokens).tokens
        if size < target:
            return True
        is_hard = False
        while progress.rounds < _MAX_ROUNDS:
            progress.rounds += 1
            made = len(progress.summaries)
            yield from self.sweep(progress, is_forced=True, is_hard=is_hard)
            after = progress.totals.tokens
            if progress.has_failed_auth or progress.failure:
                return False
            if after <= target or progress.is_late:
                return after <= target
            is_idle = len(progress.summaries) == made or after >= size
            if is_idle and (is_hard or self.limits.rules != "corrected"):
                return False
            is_hard = self.limits.rules == "corrected"
            size = min(size, after)
        return progress.totals.tokens <= target

    def _prefix_sweep(
        self, progress: CompactionProgress, is_forced: bool, is_hard: bool, stop_at_tokens: int | None
    ) -> Going:
        totals = self.passes.weighed(progress)
        enough = [self.limits.threshold_tokens, *([] if stop_at_tokens is None else [stop_at_tokens])]
        if totals and (is_forced or totals.tokens > min(enough)):
            sweep = PrefixSweep(
                progress,
                self.passes,
                self.limits,
                self.tail,
                self.configured or (self.limits, self.tail),
                is_forced,
                is_hard,
                self.incremental_max_depth,
                self.max_sweep_passes,
                stop_at_tokens,
            )
            yield from sweep.run()

    def _leaves(
        self, progress: CompactionProgress, *, is_forced: bool
    ) -> Generator[SummaryRequest, SummaryResult, int]:
        """Returns the fewest tokens that the context had."""
        totals = self.passes.weighed(progress)
        tail, place, previous, least = self.tail.start(progress.window), 0, None, totals.tokens
        while not progress.is_over:
            leaf = self.passes.next_leaf(progress, tail, place, is_forced=is_forced)
            if leaf is None:
                break
            before = progress.totals.tokens
            summary = yield from self.passes.leaf(progress, leaf, previous)
            if progress.has_failed_auth or progress.failure:
                break
            if summary is None:
                place = leaf.chunk.stop
                continue
            after = progress.totals.tokens
            if after >= min(before, least):
                break
            least = after
            if not is_forced and after <= self.limits.threshold_tokens:
                break
            tail -= len(leaf.chunk.entries) - 1
            place, previous = leaf.chunk.start + 1, summary.content
        return least

    def _condensed(self, progress: CompactionProgress, least: int, *, is_forced: bool, is_hard: bool) -> Going:
        totals = self.passes.weighed(progress)
        tail, depth, place = self.tail.start(progress.window), 0, 0
        while not progress.is_over:
            totals = self.passes.weighed(progress)
            before = totals.tokens
            if not is_forced and least <= self.limits.threshold_tokens:
                return
            chunk = condensation(totals, self.limits, tail, depth, place, is_hard=is_hard)
            if chunk is None:
                return
            # What is shallower has been decided: condensing something deeper brings none of it back.
            depth, place = chunk.depth - 1, chunk.stop
            if (yield from self.passes.condense(progress, chunk)) is not None:
                if progress.totals.tokens >= min(before, least):
                    return
                least = progress.totals.tokens
                tail -= len(chunk.entries) - 1
                place = chunk.start + 1
            elif progress.has_failed_auth:
                return

    def _is_due(self, progress: CompactionProgress, *, is_forced: bool) -> bool:
        totals = self.passes.weighed(progress)
        if is_forced or not totals:
            return bool(totals)
        return threshold_trigger(totals, self.limits).should_compact or self.leaf_due(progress).should_compact
