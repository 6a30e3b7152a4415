"""The settings of lossless compaction, and what would be compacted by them: nothing here asks a model or writes.

Places are indexes into the entries of the context. What stands at the fresh tail or behind it is never touched.
Source: lossless-claw 0.6.3 and, of the tail's tokens and newest turn, 0.15.3; the choices beside its own are named
where they differ. To choose a tail by entropy, and to preserve hot spots, by where access concentrates, are named as
refinements in libravdb memory's document of compaction, without a formula; the measure of novelty, and that to state a
fact again is an access, are ours.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from lcm.checks import check_choice, check_range
from lcm.compaction.context_totals import ContextTotals, newest_first, totals_of
from lcm.compaction.guidance.protected import NoGuidance
from lcm.compaction.lossless.source_text import zone_named
from lcm.protocols.compaction import ContextWindow, Guidance, Summarizer
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import LosslessRules
from lcm.records.summary import ContextEntry
from lcm.text import words_in
from lcm.transcript.rendering import stored_content

SHRINKABLE_TOKENS = 16
"""From here on a text cut to its length less one token still has room for the note that says it was cut."""

_CONDENSATION_SHARE = 0.1
_PREFIX_SHARE = 0.5

_log = logging.getLogger(__name__)
Words = Counter[str]


@dataclass(frozen=True, slots=True)
class LosslessSettings:
    """The numbers that plans and summaries depend on."""

    summarizer: Summarizer
    token_estimator: TokenEstimator
    guidance: Guidance = field(default_factory=NoGuidance)
    rules: LosslessRules = "corrected"
    budget_tokens: int = 128000
    max_budget_tokens: int | None = None
    """No budget is larger, whatever the model's context."""
    context_threshold: float = 0.75
    fresh_tail_count: int = 64
    fresh_tail_max_count: int | None = None
    """The tail grows up to here while its messages say something new. None = it does not."""
    fresh_tail_novelty: float = 0.8
    hot_spot_share: float = 0.0
    """Of the budget: so much may stay because it is hot. 0 = nothing does."""
    hot_spot_heat: int = 3
    leaf_chunk_tokens: int = 20000
    min_leaf_tokens: int = 2000
    leaf_min_fanout: int = 8
    condensed_min_fanout: int = 4
    condensed_min_fanout_hard: int = 2
    incremental_max_depth: int = 1
    leaf_target_tokens: int = 2400
    condensed_target_tokens: int = 2000
    summary_max_overage_factor: float = 3.0
    timezone: str = "UTC"
    circuit_breaker_threshold: int = 5
    circuit_breaker_cooldown_seconds: float = 1800.0
    sweep_deadline_seconds: float | None = 120.0
    until_under_deadline_seconds: float | None = 300.0
    fresh_tail_max_tokens: int | None = None
    """What the fresh tail may weigh, but for its newest message; None = anything."""
    summary_prefix_target_tokens: int | None = None
    """That the summaries before the fresh tail are condensed to; None = half of the threshold, at most a leaf chunk."""
    max_sweep_passes: int | None = None
    """Summaries that one sweep makes; None = as many as there are."""
    fallback_max_tokens: int | None = None
    """Of a cut source with its mark; None = its first 2,048 units, the mark not counted."""
    injected_context_tags: Sequence[str] = ()
    """What stands between such tags in a message, a host put there: no summarizer reads it."""

    def __post_init__(self) -> None:
        check_range(self, "fresh_tail_count", "min_leaf_tokens", "circuit_breaker_cooldown_seconds", ge=0)
        check_range(self, "leaf_min_fanout", "condensed_min_fanout", "condensed_min_fanout_hard", ge=1)
        check_range(self, "leaf_chunk_tokens", "leaf_target_tokens", "condensed_target_tokens", "budget_tokens", ge=1)
        check_range(self, "summary_max_overage_factor", "circuit_breaker_threshold", ge=1)
        check_range(self, "max_budget_tokens", ge=1, or_null=True)
        check_range(self, "summary_prefix_target_tokens", "max_sweep_passes", ge=1, or_null=True, is_whole=True)
        check_range(self, "fresh_tail_max_tokens", ge=0, or_null=True, is_whole=True)
        check_range(self, "fallback_max_tokens", ge=64, or_null=True, is_whole=True)
        check_range(self, "fresh_tail_max_count", ge=self.fresh_tail_count, or_null=True, is_whole=True)
        check_range(self, "incremental_max_depth", ge=-1)
        check_range(self, "context_threshold", "fresh_tail_novelty", "hot_spot_share", ge=0, le=1)
        check_range(self, "hot_spot_heat", ge=1, is_whole=True)
        if self.min_leaf_tokens > self.leaf_chunk_tokens:
            raise ValueError(
                f"min_leaf_tokens must be <= leaf_chunk_tokens ({self.leaf_chunk_tokens}), got {self.min_leaf_tokens}"
            )
        check_range(self, "sweep_deadline_seconds", "until_under_deadline_seconds", gt=0, or_null=True)
        check_choice(self, rules=LosslessRules)
        if zone_named(self.timezone) is None:
            _log.warning("there is no time zone %r: prompts show UTC", self.timezone)

    @property
    def budget(self) -> int:
        """The tokens that a context may have."""
        return min(self.budget_tokens, self.max_budget_tokens or self.budget_tokens)

    @property
    def threshold_tokens(self) -> int:
        return math.floor(self.context_threshold * self.budget)

    @property
    def hot_tokens(self) -> int:
        """That may stay because they are hot."""
        return math.floor(self.hot_spot_share * self.budget)

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

    def fanout(self, depth: int, *, is_hard: bool = False) -> int:
        """How many summaries of a depth are condensed at least."""
        if is_hard:
            return self.condensed_min_fanout_hard
        return self.leaf_min_fanout if depth == 0 else self.condensed_min_fanout


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

    @property
    def stored_tokens(self) -> int:
        return sum(entry.tokens for entry in self.entries)

    def can_shrink(self, settings: LosslessSettings) -> bool:
        """Say whether some summary could be shorter, in tokens as stored; the originals ask whatever comes of it."""
        return settings.rules != "corrected" or self.stored_tokens >= SHRINKABLE_TOKENS


def counted_tokens(totals: ContextTotals, live_tokens: float | None = None) -> int:
    """What a context has: as stored, or as the host counts, where that is a number and more."""
    live = math.floor(live_tokens) if live_tokens is not None and 0 < live_tokens < math.inf else 0
    return max(totals.tokens, live)


def raw_tokens(totals: ContextTotals, tail: int, hot_tokens: int = 0) -> int:
    """What the raw messages before the fresh tail weigh, without those that stay because they are hot."""
    return totals.raw_weight - hot_tokens - sum(totals.weight(entry) for entry in totals[tail:] if entry.is_message)


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


def tail_start(
    totals: ContextTotals, count: float, max_tokens: float | None = None, newest_turn: int | None = None
) -> int:
    """Where a fresh tail begins: at its oldest raw message, or behind the last entry; arguments as of `tail_first`."""
    said = (place for place in range(len(totals) - 1, -1, -1) if totals[place].is_message)
    start = tail_first(said, lambda place: totals.weight(totals[place]), count, max_tokens, newest_turn)
    return len(totals) if start is None else start


def fresh_tail(settings: LosslessSettings, window: ContextWindow) -> int:
    """Find the place of the newest raw messages, which compaction leaves alone.

    These are the last `fresh_tail_count`, and before them more, up to `fresh_tail_max_count`, while they say something
    new (`chosen_count`), within `fresh_tail_max_tokens`; by the rules of 0.15 it reaches back to the newest message of
    a user. A message is in or out by what is newer alone: folding what is older moves no tail. It grows no further than
    to the newest summary: what stays before that has another reason to.
    """
    totals, count = totals_of(window.entries), settings.fresh_tail_count
    turn = _newest_turn(window, totals) if settings.rules == "0.15" and count > 0 else None
    if settings.fresh_tail_max_count is not None:
        newest = reversed(totals[-settings.fresh_tail_max_count :] if settings.fresh_tail_max_count else [])
        said = list(takewhile(lambda entry: entry.is_message, newest))[::-1]
        words = newest_first(window, said, lambda _, message: words_of(stored_content(message)))
        count = chosen_count(words, count, settings.fresh_tail_novelty)
    return tail_start(totals, count, settings.fresh_tail_max_tokens, turn)


def grown_tokens(settings: LosslessSettings, window: ContextWindow) -> int:
    """What the messages weigh that stand in the tail before its last `fresh_tail_count`."""
    totals = totals_of(window.entries)
    more = totals[fresh_tail(settings, window) : tail_start(totals, settings.fresh_tail_count)]
    return sum(totals.weight(entry) for entry in more)


def chosen_count(messages: Iterator[Words], count: int, novelty: float) -> int:
    """How many messages a tail takes.

    Each is read against what is newer in the tail. By an add-one model of that tail's T words, of V kinds, a word that
    stands in it n times carries -log2((n + 1) / (T + V + 1)) bits, and one that does not carries the most that a word
    can. Novelty is the share of those most bits that the words of all messages taken before the last `count` carry
    together: 1 where nothing is repeated. The tail ends before the message that brings it below `novelty`.

    Args:
        messages: the words of each, newest first; no more are taken than there are.
        count: that are taken whatever they say.
        novelty: that those before them must have together.
    """
    tail: Words = Counter()
    length = taken = 0
    carried = most = 0.0
    for words in messages:
        if taken >= count:
            size = math.log2(length + len(tail) + 1)
            said = words.total()
            carried += said * size - sum(n * math.log2(tail[word] + 1) for word, n in words.items())
            most += said * size
            if carried < novelty * most:
                break
        tail.update(words)
        length += words.total()
        taken += 1
    return max(taken, count)


def words_of(text: str) -> Words:
    """The words of a text, without case and accents, and the pairs of its CJK characters."""
    return Counter(words_in(text))


def _newest_turn(window: ContextWindow, totals: ContextTotals) -> int | None:
    """The place of the newest message of a user; None where there is none."""
    roles = newest_first(window, totals.said, lambda _, message: message.role, "role of ")
    asked = next((entry for entry, role in zip(reversed(totals.said), roles, strict=False) if role == "user"), None)
    return None if asked is None else totals.place(asked.ordinal)


def hot_messages(window: ContextWindow, tail: int, most_tokens: int, least_heat: int) -> dict[str, int]:
    """Find the hottest messages before the fresh tail, as many as fit: their ids, and what each weighs.

    The heat of a message is the number of later messages that state one of its facts again. A call of a tool and its
    results are as hot as the hottest of them, and stay or go together; a result whose call is folded already goes. Of
    equally hot ones the newer comes first; what no longer fits is passed over.

    Args:
        window: the context.
        tail: where the fresh tail begins.
        most_tokens: 0 = nothing stays, and nothing is read.
        least_heat: of what is hot.
    """
    if not most_tokens:
        return {}
    totals, heat = totals_of(window.entries), window.heat()
    together: dict[str, list[ContextEntry]] = {}
    for entry in totals.said:
        together.setdefault(heat[entry.item_id].caller, []).append(entry)
    hot = [
        (max(heat[entry.item_id].heat for entry in entries), entries)
        for caller, entries in together.items()
        if any(entry.item_id == caller for entry in entries)
    ]
    end = totals[tail].ordinal if tail < len(totals) else math.inf
    kept: dict[str, int] = {}
    for hottest, entries in sorted(hot, key=lambda one: (-one[0], -one[1][0].ordinal)):
        weights = {one.item_id: totals.weight(one) for one in entries if one.ordinal < end}
        if hottest >= least_heat and sum(kept.values()) + sum(weights.values()) <= most_tokens:
            kept |= weights
    return kept


def leaf_chunk(
    totals: ContextTotals, settings: LosslessSettings, tail: int, start: int = 0, *, is_forced: bool = False
) -> Chunk | None:
    """Find the oldest raw messages that make a leaf: neighbours, as many as fit into a leaf chunk, at least one.

    With a minimum, a chunk below it takes another message even beyond the leaf chunk's tokens, and one that the fresh
    tail cuts short waits for more unless compaction is forced.

    Args:
        totals: the context.
        settings: `min_leaf_tokens` 0 is the original's.
        tail: where the fresh tail begins.
        start: where to begin to look.
        is_forced: wait for nothing.
    """
    while (first := next((place for place in range(start, tail) if totals[place].is_message), None)) is not None:
        chunk = leaf_from(totals, settings, first, tail)
        start = chunk.stop
        waits = start == tail and chunk.tokens < settings.min_leaf_tokens and not is_forced
        if not waits and chunk.can_shrink(settings):
            return chunk
    return None


def leaf_from(totals: ContextTotals, settings: LosslessSettings, first: int, tail: int) -> Chunk:
    tokens, stop = 0, first
    while stop < tail and totals[stop].is_message and tokens < settings.leaf_chunk_tokens:
        weight = totals.weight(totals[stop])
        if stop > first and tokens >= settings.min_leaf_tokens and tokens + weight > settings.leaf_chunk_tokens:
            break
        tokens += weight
        stop += 1
    return Chunk(first, totals[first:stop], tokens, 0)


def condensation(
    totals: ContextTotals,
    settings: LosslessSettings,
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
        settings: the fanouts, tokens and rules that decide.
        tail: where the fresh tail begins.
        depth: the shallowest depth to consider.
        start: where to begin to look for summaries of that depth.
        is_hard: the hard fanout counts instead of the others.
        wordless: ids of summaries that are condensed along with others, and count for nothing.
    """
    for deeper in totals.depths:
        begin = start if deeper == depth else 0
        fanout = settings.fanout(deeper, is_hard=is_hard)
        if deeper >= depth and (chunk := condensation_at(totals, settings, tail, deeper, fanout, begin, wordless)):
            return chunk
    return None


def condensation_at(
    totals: ContextTotals,
    settings: LosslessSettings,
    tail: int,
    depth: int,
    fanout: int,
    start: int = 0,
    wordless: Container[str] = (),
) -> Chunk | None:
    """Find summaries of one depth to condense into one of the next.

    `corrected`: the first run of neighbours that reaches the fanout as a whole; of that what fits into a leaf chunk, at
    least two, whatever the fanout. Else: of the first run alone, what fits must reach it.
    """
    is_corrected = settings.rules == "corrected"
    least = 2 if is_corrected else 1
    cap = max(settings.leaf_chunk_tokens, settings.condensation_tokens if is_corrected else 0)

    def weight(entry: ContextEntry) -> int:
        return 0 if entry.item_id in wordless else totals.weight(entry)

    begins = (at for at in range(start, tail) if totals[at].depth == depth and totals[at].item_id not in wordless)
    while (first := next((place for place in begins if place >= start), None)) is not None:
        start, run_tokens, run_count = first, 0, 0
        # Of a long run, as much as needs to be known.
        while start < tail and totals[start].depth == depth and (run_count < fanout or run_tokens <= cap):
            run_tokens += weight(totals[start])
            run_count += totals[start].item_id not in wordless
            start += 1
        stop, tokens = first, 0
        while stop < start and (stop - first < least or (tokens < cap and tokens + weight(totals[stop]) <= cap)):
            tokens += weight(totals[stop])
            stop += 1
        chunk = Chunk(first, totals[first:stop], tokens, depth + 1)
        if not is_corrected:
            run_tokens, run_count = tokens, sum(entry.item_id not in wordless for entry in chunk.entries)
        is_enough = run_count >= max(fanout, least) and run_tokens >= settings.condensation_tokens
        if is_enough and chunk.can_shrink(settings):
            return chunk
        if not is_corrected:
            return None
    return None
