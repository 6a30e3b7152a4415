"""Whether a call compacts, how far, and what came of it.

Source: lossless-claw 0.15.3, its engine's one entry to compaction.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass

from lcm.compaction.lossless.modes import Modes
from lcm.compaction.lossless.planning import leaf_trigger, threshold_trigger
from lcm.compaction.progress import CompactionProgress
from lcm.records.summary import SummaryRequest, SummaryResult


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
