"""Compaction that loses nothing: old messages fold into a DAG of summaries, and every one stays reachable.

Source: lossless-claw; `decide` is the one entry to compaction of 0.15.3.
"""

import math
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, Self

from lcm.compaction.lossless.folding import Folding
from lcm.compaction.lossless.planning import (
    LosslessSettings,
    grown_tokens,
    raw_tokens,
)
from lcm.protocols.compaction import ContextWindow, Work
from lcm.records.summary import CompactionReport, SummaryRequest, SummaryResult, TriggerReading

SWEEPS, _LEAF = "tokens that trigger it", "raw tokens before its fresh tail that trigger a leaf"
TAIL_GROWTH = "tokens that its fresh tail grew by"
HOT_TOKENS = "tokens that may stay because they are hot"
"""What its triggers look at, and what it leaves alone, as readings of them say."""


class Decision(NamedTuple):
    """Where a call ended, and what decided how far it went."""

    reason: str
    rounds: int = 0
    """Sweeps that were made; 0 where none did anything."""
    target_tokens: int = 0
    """Of what is stored."""
    overhead_tokens: int = 0
    """That the host counts and nothing stored explains."""
    is_projected: bool = False
    """What the host counts decided how far to go: the overhead stands beside what is stored."""


def decide(
    run: Folding,
    *,
    to_threshold: bool,
    is_manual: bool = False,
    is_forced: bool = False,
    live_tokens: float | None = None,
) -> Generator[SummaryRequest, SummaryResult, Decision]:
    """Compact if the context is over the threshold, or if it must: in sweeps, until it is under a target.

    Args:
        run: as configured, or as called.
        to_threshold: the threshold is the target, else the budget.
        is_manual: whatever the threshold says, for one sweep that goes as far as it can.
        is_forced: whatever the threshold says.
        live_tokens: what the host counts.
    """
    settings, counted = run.settings, run.tokens(live_tokens)
    if not (is_forced or is_manual or run.is_above(live_tokens)):
        return Decision("below threshold")
    target = settings.threshold_tokens if to_threshold else settings.budget
    overhead = counted - run.totals.tokens if to_threshold else 0
    is_adjusted = overhead > 0 and counted > target
    stop_at = max(1, target - overhead) if is_adjusted else None
    is_told = live_tokens is not None and 0 < live_tokens < math.inf
    is_backlog = to_threshold and is_told and counted > target and raw_tokens(run.totals, run.tail) > 0
    is_projected = is_adjusted or is_backlog
    beside, rounds, is_going = overhead if is_projected else 0, 0, True
    most_rounds = 1 if is_manual else settings.max_sweep_passes or math.inf
    while is_going and rounds < most_rounds:
        made, before = len(run.summaries), run.totals.tokens
        yield from run.sweep(is_forced=is_forced or is_manual or is_projected, stop_at_tokens=stop_at)
        rounds += 1
        has_shrunk = len(run.summaries) > made and (run.totals.tokens < before or rounds == 1)
        is_under = run.totals.tokens + beside <= target
        is_going = has_shrunk and not (is_under or run.has_failed_auth or run.is_over)
    if run.has_failed_auth:
        reason = f"provider auth failure{' after partial compaction' if run.summaries else ''}"
    elif run.summaries:
        reason = "compacted" if is_under or not to_threshold else "compacted but still over target"
    elif is_under:
        reason = "already under target"
    else:
        reason = "nothing to compact" if is_manual else "live context still exceeds target"
    return Decision(reason, rounds if run.summaries else 0, stop_at or target, overhead, is_projected)


@dataclass(slots=True)
class CircuitBreaker:
    """Opens after so many refusals in a row, and closes after a while or at the first success. In memory only.

    Source: lossless-claw 0.6.3, which keeps one for each model.
    """

    threshold: int
    """Refusals in a row that open it."""
    cooldown_seconds: float
    """How long it stays open."""
    refusals: int = 0
    opened_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Say whether to wait. Replays tell their own time: one that runs earlier than the opening does not wait."""
        if self.opened_at is None or now < self.opened_at:
            return False
        if now - self.opened_at < timedelta(seconds=self.cooldown_seconds):
            return True
        self.succeed()
        return False

    def refuse(self, now: datetime) -> None:
        self.refusals += 1
        if self.refusals >= self.threshold:
            self.opened_at = now

    def succeed(self) -> None:
        self.refusals, self.opened_at = 0, None


@dataclass(frozen=True, slots=True)
class Lossless(LosslessSettings):
    """Leaf summaries of raw messages, condensed depth by depth, in three modes: a leaf after a turn, a sweep, sweeps
    until the context is under a target.

    A pass whose summarizer fails, or whose plan another writer has overtaken, writes nothing; the next run tries again.
    What guidance protects stays in the context word for word, parts the messages around it, and is kept as a shard; so
    does, without a shard and for as long as it is, what is hot (`hot_messages`).
    A chunk in which nobody says a word is not summarised. Reasons that reports give: "compacted", "below threshold",
    "nothing to compact", "live context still exceeds target", "already under target", "could not reach target",
    "provider auth failure", "provider auth failure after partial compaction", "circuit breaker open", "time limit",
    or the text of the failure that ended the run.

    Source: lossless-claw 0.6.3 (`rules` original), and 0.15.3 (`rules` 0.15), of which `Folding.sweep` and `decide` say
    how it folds:

    | | corrected | original |
    |---|---|---|
    | condensed is | the first run of a depth that reaches its fanout | the first run, if what fits a leaf chunk does |
    | of one depth are condensed | two at least | one, where the fanout is 1 |
    | hard fanout | from the second sweep under a target on | never |
    | depth 1 is shown | the depth 1 before it | nothing |
    | a cut source with its note | is shorter than what it replaces | may be longer |
    | source | speakers, a line a step of a tool: `source_of_messages` | words without speakers, tools invisible |
    | a leaf is asked for | 0.55 of its text, which holds steps alone | 0.35 |

    So few long leaves, or a short early run, end the original's condensation for good. Its `min_leaf_tokens` is 0: it
    makes a leaf of each single message once the fresh tail alone is over the threshold.
    """

    breaker: CircuitBreaker = field(init=False, repr=False, compare=False)
    configured: LosslessSettings | None = field(default=None, init=False, repr=False, compare=False)
    """What this was `called` of."""
    reads_admission = False
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "fresh_tail_novelty": {"fresh_tail_max_count": None},
        "hot_spot_heat": {"hot_spot_share": 0.0},
        "summary_prefix_target_tokens": {"rules": ("corrected", "original")},
        "max_sweep_passes": {"rules": ("corrected", "original")},
        "injected_context_tags": {"rules": ("corrected", "original")},
    }
    """Setting -> the values of others that leave it without effect; several: each of them does."""

    def __post_init__(self) -> None:
        LosslessSettings.__post_init__(self)  # `super` finds no class that has slots
        breaker = CircuitBreaker(self.circuit_breaker_threshold, self.circuit_breaker_cooldown_seconds)
        object.__setattr__(self, "breaker", breaker)

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        """Make one leaf if a chunk's worth of raw messages waits; then sweep if the context is over the threshold."""
        run = self._begun(window, now, incidents, self.sweep_deadline_seconds)
        if self.rules == "0.15":
            return (yield from self._decided(run, live_tokens=live_tokens))
        before, is_leaf_due = run.totals.tokens, run.has_leaf_due
        leaf = TriggerReading(_LEAF, run.raw_tokens, self.leaf_chunk_tokens)
        run.triggers = (_sweeps(run, live_tokens), leaf, *_left_alone(run))
        if self.breaker.is_open(now):
            return run.report(before, "circuit breaker open")
        reason = "below threshold"
        if is_leaf_due:
            yield from run.one_leaf()
            self._settle(run)
            reason = "nothing to compact"
        if run.is_above(live_tokens) and not run.is_over and not self.breaker.is_open(now):
            yield from run.sweep()
            self._settle(run)
            reason = "live context still exceeds target"
        return _report(run, before, reason)

    def compact(
        self,
        window: ContextWindow,
        now: datetime,
        *,
        incidents: Counter[str],
        is_forced: bool = False,
        target_tokens: int | None = None,
    ) -> Work:
        """Sweep if the context is over the threshold or `is_forced`; with a target, sweep until the context fits."""
        has_target = target_tokens is not None
        deadline = self.until_under_deadline_seconds if has_target else self.sweep_deadline_seconds
        run = self._begun(window, now, incidents, deadline)
        if self.rules == "0.15" and not has_target:
            return (yield from self._decided(run, is_manual=is_forced))
        before = run.totals.tokens
        if not (is_forced or has_target):
            run.triggers = (_sweeps(run), *_left_alone(run))
        if self.breaker.is_open(now):
            return run.report(before, "circuit breaker open")
        if not (is_forced or has_target or run.is_above()):
            return run.report(before, "below threshold")
        if has_target:
            is_under = yield from run.until_under(target_tokens)
            reason = "already under target" if is_under else "could not reach target"
        else:
            run.rounds = 1
            yield from run.sweep(is_forced=is_forced)
            is_under, reason = True, "nothing to compact" if is_forced else "live context still exceeds target"
        self._settle(run)
        return _report(run, before, reason, is_reason_final=not is_under)

    def called(
        self,
        context_threshold: float | None = None,
        fresh_tail_count: int | None = None,
        leaf_chunk_tokens: int | None = None,
    ) -> Self:
        """The same for a model or a session that has settings of its own; None = as configured.

        By the rules of 0.15 what is condensed, and how much summaries may take, stays as configured.
        """
        given = {
            "context_threshold": context_threshold,
            "fresh_tail_count": fresh_tail_count,
            "leaf_chunk_tokens": leaf_chunk_tokens,
        }
        own: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        called = replace(self, **own)
        object.__setattr__(called, "breaker", self.breaker)
        object.__setattr__(called, "configured", self.configured or self)
        return called

    def _begun(
        self, window: ContextWindow, now: datetime, incidents: Counter[str], deadline_seconds: float | None
    ) -> Folding:
        run = Folding(window, now, incidents, deadline_seconds, settings=self, configured=self.configured)
        run.settle_hot()
        return run

    def _decided(self, run: Folding, *, is_manual: bool = False, live_tokens: float = 0) -> Work:
        before = run.totals.tokens
        run.triggers = () if is_manual else (_sweeps(run, live_tokens), *_left_alone(run))
        if self.breaker.is_open(run.now):
            return run.report(before, "circuit breaker open")
        decision = yield from decide(run, to_threshold=not is_manual, is_manual=is_manual, live_tokens=live_tokens)
        run.rounds = decision.rounds
        self._settle(run)
        return _report(run, before, decision.reason, is_reason_final=True)

    def _settle(self, run: Folding) -> None:
        if run.has_failed_auth:
            self.breaker.refuse(run.now)
        elif run.summaries:
            self.breaker.succeed()


def _sweeps(run: Folding, live_tokens: float | None = None) -> TriggerReading:
    return TriggerReading(SWEEPS, run.tokens(live_tokens), run.settings.threshold_tokens)


def _left_alone(run: Folding) -> list[TriggerReading]:
    """What stays for another reason than that it is among the last messages, where anything may."""
    settings, hot_tokens = run.settings, sum(run.hot.values())
    grows, keeps_hot = settings.fresh_tail_max_count is not None, settings.hot_tokens > 0
    grown = [TriggerReading(TAIL_GROWTH, grown_tokens(settings, run.window), None)] if grows else []
    return grown + ([TriggerReading(HOT_TOKENS, hot_tokens, settings.hot_tokens)] if keeps_hot else [])


def _report(run: Folding, tokens_before: int, reason: str, *, is_reason_final: bool = False) -> CompactionReport:
    """Say what was done; the reason given counts where nothing was, and nothing went wrong."""
    if run.is_late:
        reason = "time limit"
    elif run.summaries and not is_reason_final:
        reason = "compacted"
    return run.report(tokens_before, reason)
