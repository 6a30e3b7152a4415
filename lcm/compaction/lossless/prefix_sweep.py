"""A sweep that folds all that is old, and goes on condensing until the summaries before the fresh tail are few enough.

Source: lossless-claw 0.15.3, without its deadline: `CompactionProgress.is_late` is ours.
"""

from collections.abc import Generator
from dataclasses import dataclass

from lcm.compaction.lossless.fresh_tail import FreshTail
from lcm.compaction.lossless.passes import Passes
from lcm.compaction.lossless.planning import Limits, condensation
from lcm.compaction.lossless.source_text import summary_words
from lcm.compaction.progress import CompactionProgress
from lcm.records.summary import Summary, SummaryRequest, SummaryResult


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
