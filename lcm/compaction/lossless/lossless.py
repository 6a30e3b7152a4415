"""Compaction that loses nothing: old messages fold into a DAG of summaries, and every one stays reachable."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Self

from lcm.checks import check_choice, check_range
from lcm.compaction.guidance.none import NoGuidance
from lcm.compaction.lossless.breaker import CircuitBreaker
from lcm.compaction.lossless.decision import decide
from lcm.compaction.lossless.escalation import Escalation
from lcm.compaction.lossless.fresh_tail import FreshTail
from lcm.compaction.lossless.hot_spots import HotSpots
from lcm.compaction.lossless.modes import Modes
from lcm.compaction.lossless.passes import Passes
from lcm.compaction.lossless.planning import CompactionTrigger, Limits, threshold_trigger
from lcm.compaction.lossless.prompt_time import zone_named
from lcm.compaction.progress import CompactionProgress, report
from lcm.compaction.summarizer.target_tokens import LEAF_SHARE
from lcm.protocols.compaction import ContextWindow, Guidance, Summarizer, Work
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import LosslessRules
from lcm.records.summary import CompactionReport, TriggerReading

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
