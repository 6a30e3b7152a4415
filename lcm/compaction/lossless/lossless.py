"""Compaction that loses nothing: old messages fold into a DAG of summaries, and every one stays reachable.

Source: lossless-claw; `decide` is the one entry to compaction of 0.15.3.
"""

import logging
import math
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ClassVar, Self

from lcm.checks import check_choice, check_range
from lcm.compaction.guidance.protected import NoGuidance
from lcm.compaction.lossless.escalation import Escalation
from lcm.compaction.lossless.fresh_tail import FreshTail
from lcm.compaction.lossless.hot_spots import HotSpots
from lcm.compaction.lossless.modes import Modes
from lcm.compaction.lossless.passes import Passes
from lcm.compaction.lossless.planning import CompactionTrigger, Limits, leaf_trigger, threshold_trigger
from lcm.compaction.lossless.prompt_time import zone_named
from lcm.compaction.progress import CompactionProgress, report
from lcm.compaction.summarizer.chain import LEAF_SHARE
from lcm.protocols.compaction import ContextWindow, Guidance, Summarizer, Work
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import LosslessRules
from lcm.records.summary import CompactionReport, SummaryRequest, SummaryResult, TriggerReading


@dataclass(slots=True)
class Decision:
    """What a call found, and where it ended."""

    tokens_before: int
    """Stored, or as the host counts them, whichever is more."""
    target_tokens: int = 0
    """Of what is stored."""
    overhead_tokens: int = 0
    """That the host counts and nothing stored explains."""
    raw_tokens: int = 0
    """Of raw messages before the fresh tail."""
    is_projected: bool = False
    """What the host counts decided how far to go: the overhead stands beside what is stored."""
    tokens_after: int = 0
    rounds: int = 0
    """Sweeps that were made; 0 where none did anything."""
    reason: str = "below threshold"
    is_ok: bool = True
    is_compacted: bool = False

    @property
    def projected_tokens(self) -> int:
        """As the host would count them afterwards."""
        return self.tokens_after + (self.overhead_tokens if self.is_projected else 0)


Deciding = Generator[SummaryRequest, SummaryResult, Decision]


def decide(
    modes: Modes,
    progress: CompactionProgress,
    *,
    to_threshold: bool,
    is_forced: bool = False,
    is_manual: bool = False,
    live_tokens: float | None = None,
) -> Deciding:
    """Compact if the context is over the threshold, or if it must.

    Args:
        modes: as configured, or as called.
        progress: the run.
        to_threshold: the threshold is the target, not the budget, and sweeps follow one another until it is reached.
        is_forced: whatever the threshold says.
        is_manual: likewise, for one sweep that goes as far as it can.
        live_tokens: what the host counts.
    """
    totals = modes.passes.weighed(progress)
    over = threshold_trigger(totals, modes.limits, live_tokens)
    decision = Decision(over.tokens)
    if not (is_forced or is_manual or over.should_compact):
        return decision
    if not (is_manual or to_threshold):
        return (yield from _until_under(modes, progress, decision, live_tokens, is_forced))
    target = over.threshold if to_threshold else modes.limits.budget_tokens
    decision.overhead_tokens = over.tokens - totals.tokens if to_threshold else 0
    is_adjusted = decision.overhead_tokens > 0 and over.tokens > target
    decision.target_tokens = max(1, target - decision.overhead_tokens) if is_adjusted else target
    decision.raw_tokens = leaf_trigger(totals, modes.limits, modes.tail.start(progress.window)).tokens
    is_backlog = to_threshold and _is_told(live_tokens) and over.tokens > target and decision.raw_tokens > 0
    decision.is_projected = is_adjusted or is_backlog
    yield from _swept(
        modes,
        progress,
        decision,
        target,
        is_forced=is_forced or is_manual or decision.is_projected,
        stop_at_tokens=decision.target_tokens if is_adjusted else None,
        is_chain=to_threshold and not is_manual,
    )
    is_under = decision.projected_tokens <= target
    decision.is_compacted = bool(progress.summaries)
    decision.is_ok = not progress.has_failed_auth and (is_under or (decision.is_compacted and not to_threshold))
    if progress.has_failed_auth:
        decision.reason = _auth_reason(decision)
    elif decision.is_compacted:
        is_short = to_threshold and not is_under
        decision.reason = "compacted but still over target" if is_short else "compacted"
    elif is_under:
        decision.reason = "already under target"
    else:
        decision.reason = "nothing to compact" if is_manual else "live context still exceeds target"
    return decision


def _is_told(live_tokens: float | None) -> bool:
    return live_tokens is not None and 0 < live_tokens < math.inf


def _swept(
    modes: Modes,
    progress: CompactionProgress,
    decision: Decision,
    target: int,
    *,
    is_forced: bool,
    stop_at_tokens: int | None,
    is_chain: bool,
) -> Generator[SummaryRequest, SummaryResult, None]:
    """Sweep; in a chain, again while the last sweep made the context smaller and it is still above the target."""
    sweeps, most = 0, modes.max_sweep_passes if is_chain else 1
    while True:
        made, before = len(progress.summaries), progress.totals.tokens
        yield from modes.sweep(progress, is_forced=is_forced, stop_at_tokens=stop_at_tokens)
        sweeps += 1
        decision.tokens_after = progress.totals.tokens
        has_acted = len(progress.summaries) > made
        has_shrunk = decision.tokens_after < before or sweeps == 1
        if progress.has_failed_auth or progress.is_over or not (has_acted and has_shrunk):
            break
        if decision.projected_tokens <= target or (most is not None and sweeps >= most):
            break
    decision.rounds = sweeps if progress.summaries else 0


def _until_under(
    modes: Modes, progress: CompactionProgress, decision: Decision, live_tokens: float | None, is_forced: bool
) -> Deciding:
    budget = decision.target_tokens = modes.limits.budget_tokens
    live = live_tokens if _is_told(live_tokens) or not is_forced else budget
    decision.is_ok = yield from modes.until_under(progress, budget, live)
    decision.rounds, decision.tokens_after = progress.rounds, progress.totals.tokens
    decision.is_compacted = decision.rounds > 0
    if progress.has_failed_auth:
        decision.reason = _auth_reason(decision)
    elif decision.is_ok:
        decision.reason = "compacted" if decision.rounds else "already under target"
    else:
        decision.reason = "could not reach target"
    return decision


def _auth_reason(decision: Decision) -> str:
    return f"provider auth failure{' after partial compaction' if decision.is_compacted else ''}"


class CircuitBreaker:
    """Opens after so many refusals in a row, and closes after a while or at the first success. In memory only.

    Source: lossless-claw 0.6.3, which keeps one for each model.
    """

    def __init__(self, threshold: int, cooldown_seconds: float) -> None:
        """
        Args:
            threshold: refusals in a row that open it.
            cooldown_seconds: how long it stays open.
        """
        self._threshold = threshold
        self._cooldown = timedelta(seconds=cooldown_seconds)
        self._refusals = 0
        self._opened_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Say whether to wait. Replays tell their own time: one that runs earlier than the opening does not wait."""
        if self._opened_at is None or now < self._opened_at:
            return False
        if now - self._opened_at < self._cooldown:
            return True
        self.succeed()
        return False

    def refuse(self, now: datetime) -> None:
        self._refusals += 1
        if self._refusals >= self._threshold:
            self._opened_at = now

    def succeed(self) -> None:
        self._refusals = 0
        self._opened_at = None


_log = logging.getLogger(__name__)
_STEPS_SHARE = 0.55  # a line a step says as much as what tools returned, cut short, did in half as many tokens again
SWEEPS, _LEAF = "tokens that trigger it", "raw tokens before its fresh tail that trigger a leaf"
"""What its triggers look at, as readings of them say."""


@dataclass(frozen=True, slots=True)
class Lossless:
    """Leaf summaries of raw messages, condensed depth by depth, in three modes: a leaf after a turn, a sweep, sweeps
    until the context is under a target.

    A pass whose summarizer fails, or whose plan another writer has overtaken, writes nothing; the next run tries again.
    What guidance protects stays in the context word for word, parts the messages around it, and is kept as a shard; so
    does, without a shard and for as long as it is, what is hot (`HotSpots`).
    A chunk in which nobody says a word is not summarised. Reasons that reports give: "compacted", "below threshold",
    "nothing to compact", "live context still exceeds target", "already under target", "could not reach target",
    "provider auth failure", "provider auth failure after partial compaction", "circuit breaker open", "time limit",
    or the text of the failure that ended the run.

    Source: lossless-claw 0.6.3 (`rules` original), and 0.15.3 (`rules` 0.15), of which `PrefixSweep` and `decide` say
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
    modes: Modes = field(init=False, repr=False, compare=False)
    breaker: CircuitBreaker = field(init=False, repr=False, compare=False)
    is_off = False
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
        check_range(self, "fresh_tail_count", "min_leaf_tokens", "circuit_breaker_cooldown_seconds", ge=0)
        check_range(
            self,
            "leaf_min_fanout",
            "condensed_min_fanout",
            "condensed_min_fanout_hard",
            "leaf_chunk_tokens",
            "leaf_target_tokens",
            "condensed_target_tokens",
            "summary_max_overage_factor",
            "budget_tokens",
            "circuit_breaker_threshold",
            ge=1,
        )
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
        object.__setattr__(self, "modes", self._modes())
        breaker = CircuitBreaker(self.circuit_breaker_threshold, self.circuit_breaker_cooldown_seconds)
        object.__setattr__(self, "breaker", breaker)

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        """Make one leaf if a chunk's worth of raw messages waits; then sweep if the context is over the threshold."""
        progress = CompactionProgress(window, now, incidents, self.sweep_deadline_seconds)
        totals = self.modes.begun(progress)
        if self.rules == "0.15":
            return (yield from self._decided(progress, live_tokens=live_tokens))
        before = totals.tokens
        leaf = self.modes.leaf_due(progress)
        over = threshold_trigger(totals, self.modes.limits, live_tokens)
        progress.triggers = (_seen(over, SWEEPS), _seen(leaf, _LEAF), *self.modes.kept_readings(progress))
        if self.breaker.is_open(now):
            return _report(progress, before, "circuit breaker open")
        reason = "below threshold"
        if leaf.should_compact:
            yield from self.modes.one_leaf(progress)
            self._settle(progress)
            reason = "nothing to compact"
        is_over = threshold_trigger(self.modes.passes.weighed(progress), self.modes.limits, live_tokens).should_compact
        if is_over and not progress.is_over and not self.breaker.is_open(now):
            yield from self.modes.sweep(progress)
            self._settle(progress)
            reason = "live context still exceeds target"
        return _report(progress, before, reason)

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
        progress = CompactionProgress(window, now, incidents, deadline)
        totals = self.modes.begun(progress)
        before = totals.tokens
        over = threshold_trigger(totals, self.modes.limits)
        if not (is_forced or has_target):
            progress.triggers = (_seen(over, SWEEPS), *self.modes.kept_readings(progress))
        if self.rules == "0.15" and not has_target:
            return (yield from self._decided(progress, is_manual=is_forced))
        if self.breaker.is_open(now):
            return _report(progress, before, "circuit breaker open")
        if has_target:
            is_under = yield from self.modes.until_under(progress, target_tokens)
            self._settle(progress)
            if not is_under:
                return _report(progress, before, "could not reach target", is_reason_final=True)
            return _report(progress, before, "already under target")
        if not is_forced and not over.should_compact:
            return _report(progress, before, "below threshold")
        progress.rounds = 1
        yield from self.modes.sweep(progress, is_forced=is_forced)
        self._settle(progress)
        return _report(progress, before, "nothing to compact" if is_forced else "live context still exceeds target")

    def called(
        self,
        context_threshold: float | None = None,
        fresh_tail_count: int | None = None,
        leaf_chunk_tokens: int | None = None,
    ) -> Self:
        """The same for a model or a session that has settings of its own; None = as configured.

        By the rules of 0.15 what is condensed, and how much summaries may take, stays as configured.
        """
        called = replace(self)
        modes = self.modes.called(context_threshold, fresh_tail_count, leaf_chunk_tokens)
        object.__setattr__(called, "modes", modes)
        object.__setattr__(called, "breaker", self.breaker)
        return called

    def _decided(self, progress: CompactionProgress, *, is_manual: bool = False, live_tokens: float = 0) -> Work:
        before = progress.totals.tokens
        over = threshold_trigger(progress.totals, self.modes.limits, live_tokens)
        progress.triggers = () if is_manual else (_seen(over, SWEEPS), *self.modes.kept_readings(progress))
        if self.breaker.is_open(progress.now):
            return _report(progress, before, "circuit breaker open")
        decision = yield from decide(
            self.modes, progress, to_threshold=not is_manual, is_manual=is_manual, live_tokens=live_tokens
        )
        progress.rounds = decision.rounds
        self._settle(progress)
        return _report(progress, before, decision.reason, is_reason_final=True)

    def _settle(self, progress: CompactionProgress) -> None:
        if progress.has_failed_auth:
            self.breaker.refuse(progress.now)
        elif progress.summaries:
            self.breaker.succeed()

    def _modes(self) -> Modes:
        limits = Limits(
            context_threshold=self.context_threshold,
            budget_tokens=min(self.budget_tokens, self.max_budget_tokens or self.budget_tokens),
            leaf_chunk_tokens=self.leaf_chunk_tokens,
            min_leaf_tokens=self.min_leaf_tokens,
            leaf_min_fanout=self.leaf_min_fanout,
            condensed_min_fanout=self.condensed_min_fanout,
            condensed_min_fanout_hard=self.condensed_min_fanout_hard,
            condensed_target_tokens=self.condensed_target_tokens,
            rules=self.rules,
            summary_prefix_target_tokens=self.summary_prefix_target_tokens,
        )
        escalation = Escalation(
            token_estimator=self.token_estimator,
            leaf_target_tokens=self.leaf_target_tokens,
            condensed_target_tokens=self.condensed_target_tokens,
            summary_max_overage_factor=self.summary_max_overage_factor,
            leaf_share=_STEPS_SHARE if self.rules == "corrected" else LEAF_SHARE,
            fallback_max_tokens=self.fallback_max_tokens,
            rules=self.rules,
        )
        passes = Passes(
            limits=limits,
            escalation=escalation,
            guidance=self.guidance,
            token_estimator=self.token_estimator,
            timezone=self.timezone,
            injected_tags=self.injected_context_tags,
        )
        tail = FreshTail(
            self.fresh_tail_count,
            self.fresh_tail_max_count,
            self.fresh_tail_novelty,
            self.fresh_tail_max_tokens,
            keeps_turn=self.rules == "0.15",
        )
        hot_spots = HotSpots(math.floor(self.hot_spot_share * limits.budget_tokens), self.hot_spot_heat)
        return Modes(limits, tail, hot_spots, passes, self.incremental_max_depth, self.max_sweep_passes)


def _seen(trigger: CompactionTrigger, what: str) -> TriggerReading:
    return TriggerReading(what, trigger.tokens, trigger.threshold)


def _report(
    progress: CompactionProgress, tokens_before: int, reason: str, *, is_reason_final: bool = False
) -> CompactionReport:
    """Say what was done; the reason given counts where nothing was, and nothing went wrong."""
    if progress.is_late:
        reason = "time limit"
    elif progress.summaries and not is_reason_final:
        reason = "compacted"
    return report(progress, tokens_before, reason)
