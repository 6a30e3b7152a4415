"""What would be compacted, and why: nothing here reads a store, asks a model or writes.

Places are indexes into the entries of the context. What stands at `tail` or behind it is never touched.
Source: lossless-claw 0.6.3; the choices beside its own are named where they differ.
"""

import math
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lcm.compaction.context_totals import ContextTotals
from lcm.records.rules import LosslessRules
from lcm.records.summary import ContextEntry

SHRINKABLE_TOKENS = 16
"""From here on a text cut to its length less one token still has room for the note that says it was cut."""

_CONDENSATION_SHARE = 0.1
_PREFIX_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers that a plan depends on; `Lossless` says what each is."""

    context_threshold: float
    budget_tokens: int
    leaf_chunk_tokens: int
    min_leaf_tokens: int
    leaf_min_fanout: int
    condensed_min_fanout: int
    condensed_min_fanout_hard: int
    condensed_target_tokens: int
    rules: LosslessRules
    summary_prefix_target_tokens: int | None = None

    @property
    def threshold_tokens(self) -> int:
        return math.floor(self.context_threshold * self.budget_tokens)

    @property
    def condensation_tokens(self) -> int:
        """Fewer are not worth condensing: a tenth of a leaf chunk, at least the length aimed at."""
        return max(self.condensed_target_tokens, math.floor(_CONDENSATION_SHARE * self.leaf_chunk_tokens))

    def prefix_tokens(self, threshold_tokens: int) -> int:
        """That the summaries before the fresh tail may have: by default half of the threshold, at most a leaf chunk, at
        least the length aimed at."""
        half = math.floor(_PREFIX_SHARE * max(1, threshold_tokens))
        fitting = max(self.condensed_target_tokens, min(self.leaf_chunk_tokens, half))
        return self.summary_prefix_target_tokens or fitting

    def fanout(self, depth: int, *, is_hard: bool) -> int:
        """How many summaries of a depth are condensed at least."""
        if is_hard:
            return self.condensed_min_fanout_hard
        return self.leaf_min_fanout if depth == 0 else self.condensed_min_fanout


class CompactionTrigger(NamedTuple):
    """Whether to compact, and the two numbers that were compared."""

    should_compact: bool
    reason: Literal["threshold", "leaf", "none"]
    tokens: int
    threshold: int


class Chunk(NamedTuple):
    """Neighbouring entries to be replaced by one summary."""

    start: int
    entries: list[ContextEntry]
    tokens: int
    """What they weigh."""
    depth: int
    """Of the summary to be made."""

    @property
    def stop(self) -> int:
        return self.start + len(self.entries)


def threshold_trigger(totals: ContextTotals, limits: Limits, live_tokens: float | None = None) -> CompactionTrigger:
    """More stands in the context, or is counted by the host, than the threshold share of the budget."""
    live = math.floor(live_tokens) if live_tokens is not None and 0 < live_tokens < math.inf else 0
    tokens, threshold = max(totals.tokens, live), limits.threshold_tokens
    is_over = tokens > threshold
    return CompactionTrigger(is_over, "threshold" if is_over else "none", tokens, threshold)


def leaf_trigger(totals: ContextTotals, limits: Limits, tail: int, hot_tokens: int = 0) -> CompactionTrigger:
    """At least a chunk's worth of raw messages stands before the fresh tail, without those that stay because they are
    hot."""
    protected = hot_tokens + sum(totals.weight(entry) for entry in totals[tail:] if entry.is_message)
    tokens, threshold = totals.raw_weight - protected, limits.leaf_chunk_tokens
    is_over = tokens >= threshold
    return CompactionTrigger(is_over, "leaf" if is_over else "none", tokens, threshold)


def tail_start(
    totals: ContextTotals, fresh_tail_count: float, max_tokens: float | None = None, newest_turn: int | None = None
) -> int:
    """Where the fresh tail begins: at its oldest raw message, at the first one there is where they are fewer.

    Args:
        totals: the context.
        fresh_tail_count: raw messages in the tail; 0 = there is none.
        max_tokens: what they may weigh, but for the newest; None = anything.
        newest_turn: the place of a message that is in the tail whatever count and weight say.
    """
    said = (place for place in range(len(totals) - 1, -1, -1) if totals[place].is_message)
    start = tail_first(said, lambda place: totals.weight(totals[place]), fresh_tail_count, max_tokens, newest_turn)
    return len(totals) if start is None else start


def tail_first(
    newest_first: Iterable[int],
    weight: Callable[[int], int],
    count: float,
    max_tokens: float | None = None,
    newest_turn: int | None = None,
) -> int | None:
    """The first place of a fresh tail: of its entries, messages or whatever is counted; None where it has none.

    Args:
        newest_first: the places that may be in it, from the last back.
        weight: what the entry at a place weighs.
        count: how many it has; 0 = none.
        max_tokens: what they may weigh, but for the newest; None = anything.
        newest_turn: the place of a message that is in it whatever count and weight say.
    """
    first, taken, tokens = None, 0, 0
    for place in newest_first if count > 0 else ():
        is_full = taken >= count or (max_tokens is not None and taken and tokens + weight(place) > max_tokens)
        if is_full and (newest_turn is None or place < newest_turn):
            break
        first, taken, tokens = place, taken + 1, tokens + weight(place)
    return first


def leaf_chunk(
    totals: ContextTotals, limits: Limits, tail: int, start: int = 0, *, is_forced: bool = False
) -> Chunk | None:
    """Find the oldest raw messages that make a leaf: neighbours, as many as fit into a leaf chunk, at least one.

    With a minimum, a chunk below it takes another message even beyond the leaf chunk's tokens, and one that the fresh
    tail cuts short waits for more unless compaction is forced.

    Args:
        totals: the context.
        limits: `min_leaf_tokens` 0 is the original's.
        tail: where the fresh tail begins.
        start: where to begin to look.
        is_forced: wait for nothing.
    """
    while (first := next((place for place in range(start, tail) if totals[place].is_message), None)) is not None:
        chunk = leaf_from(totals, limits, first, tail)
        start = chunk.stop
        waits = start == tail and chunk.tokens < limits.min_leaf_tokens and not is_forced
        if not waits and can_shrink(chunk, limits):
            return chunk
    return None


def leaf_from(totals: ContextTotals, limits: Limits, first: int, tail: int) -> Chunk:
    tokens, stop = 0, first
    while stop < tail and totals[stop].is_message and tokens < limits.leaf_chunk_tokens:
        weight = totals.weight(totals[stop])
        if stop > first and tokens >= limits.min_leaf_tokens and tokens + weight > limits.leaf_chunk_tokens:
            break
        tokens += weight
        stop += 1
    return Chunk(first, totals[first:stop], tokens, 0)


def cut_chunk(totals: ContextTotals, chunk: Chunk, stop: int) -> Chunk:
    """A chunk up to a place."""
    if stop >= chunk.stop:
        return chunk
    entries = totals[chunk.start : stop]
    return Chunk(chunk.start, entries, sum(map(totals.weight, entries)), chunk.depth)


def condensation(
    totals: ContextTotals,
    limits: Limits,
    tail: int,
    depth: int = 0,
    start: int = 0,
    *,
    is_hard: bool = False,
    wordless: Container[str] = (),
) -> Chunk | None:
    """Find the shallowest summaries that are worth condensing.

    Args:
        totals: the context.
        limits: the fanouts, tokens and rules that decide.
        tail: where the fresh tail begins.
        depth: the shallowest depth to consider.
        start: where to begin to look for summaries of that depth.
        is_hard: the hard fanout counts instead of the others.
        wordless: ids of summaries that are condensed along with others, and count for nothing.
    """
    for deeper in totals.depths:
        if deeper < depth:
            continue
        begin = start if deeper == depth else 0
        fanout = limits.fanout(deeper, is_hard=is_hard)
        chunk = condensation_at(totals, limits, tail, deeper, begin, fanout=fanout, wordless=wordless)
        if chunk is not None:
            return chunk
    return None


def condensation_at(
    totals: ContextTotals,
    limits: Limits,
    tail: int,
    depth: int,
    start: int = 0,
    *,
    fanout: int,
    wordless: Container[str] = (),
) -> Chunk | None:
    """Find summaries of one depth to condense into one of the next.

    `corrected`: the first run of neighbours that reaches the fanout as a whole; of that what fits into a leaf chunk, at
    least two, whatever the fanout. Else: of the first run alone, what fits must reach it.
    """
    is_first_run = limits.rules != "corrected"
    least = 1 if is_first_run else 2
    cap = limits.leaf_chunk_tokens if is_first_run else max(limits.leaf_chunk_tokens, limits.condensation_tokens)
    begins = (
        place for place in range(start, tail) if totals[place].depth == depth and totals[place].item_id not in wordless
    )
    while (first := next((place for place in begins if place >= start), None)) is not None:
        run = _run_from(totals, first, tail, fanout, cap, wordless)
        start = run.stop
        chunk = _prefix(totals, run, cap, least, wordless)
        judged = chunk if is_first_run else run
        count = sum(entry.item_id not in wordless for entry in judged.entries)
        is_enough = count >= max(fanout, least) and judged.tokens >= limits.condensation_tokens
        if is_enough and can_shrink(chunk, limits):
            return chunk
        if is_first_run:
            return None
    return None


def _run_from(
    totals: ContextTotals, first: int, tail: int, fanout: int, cap_tokens: int, wordless: Container[str]
) -> Chunk:
    """The run of summaries that begins there; of a long one, as much as needs to be known."""
    depth = totals[first].depth
    assert depth is not None
    tokens, count, stop = 0, 0, first
    while stop < tail and totals[stop].depth == depth and (count < fanout or tokens <= cap_tokens):
        if totals[stop].item_id not in wordless:
            tokens += totals.weight(totals[stop])
            count += 1
        stop += 1
    return Chunk(first, totals[first:stop], tokens, depth + 1)


def _prefix(totals: ContextTotals, run: Chunk, cap_tokens: int, least: int, wordless: Container[str]) -> Chunk:
    """The first entries of a run, as many as weigh no more than the cap together."""
    tokens = count = 0
    for entry in run.entries:
        weight = 0 if entry.item_id in wordless else totals.weight(entry)
        if count >= least and (tokens >= cap_tokens or tokens + weight > cap_tokens):
            break
        tokens += weight
        count += 1
    return Chunk(run.start, run.entries[:count], tokens, run.depth)


def can_shrink(chunk: Chunk, limits: Limits) -> bool:
    """Say whether some summary could be shorter, in tokens as stored; the originals ask whatever comes of it."""
    stored = sum(entry.tokens for entry in chunk.entries)
    return limits.rules != "corrected" or stored >= SHRINKABLE_TOKENS
