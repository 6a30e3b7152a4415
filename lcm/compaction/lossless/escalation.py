"""A summary that is short enough, pressed for in steps.

Source: lossless-claw 0.6.3. There what is cut off may be longer than what it was cut from; `limit_tokens` forbids that.
0.15.3 bounds it by `fallback_max_tokens`.
"""

import logging
import math
from bisect import bisect_right
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lcm.compaction.harm import lost_rules
from lcm.compaction.summarizer.chain import LEAF_SHARE, harmless_beginning, requested_tokens
from lcm.javascript import first_units, trim, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import LosslessRules
from lcm.records.summary import DIRECTIVE_MARK, Level, SummaryRequest, SummaryResult
from lcm.token_estimator import first_tokens

_log = logging.getLogger(__name__)

_FALLBACK_UNITS = 2048
_UNITS_PER_TOKEN = 4
_WARN_FROM = 1.5


class EscalationResult(NamedTuple):
    """A summary, how hard it had to be pressed for, and the last answer of the summarizer, if it was asked."""

    text: str
    level: Level
    result: SummaryResult | None


@dataclass(frozen=True, slots=True)
class Escalation:
    """Asks for a summary in steps until it is short enough; the settings are the lengths."""

    token_estimator: TokenEstimator
    leaf_target_tokens: int
    condensed_target_tokens: int
    summary_max_overage_factor: float
    leaf_share: float = LEAF_SHARE
    """Of the tokens of its text that a leaf is asked to have."""
    fallback_max_tokens: int | None = None
    """Of a cut source with its mark; None = its first 2,048 units, the mark not counted."""
    rules: LosslessRules = "corrected"

    def press(
        self,
        source: str,
        depth: int,
        previous: str | None = None,
        limit_tokens: int | None = None,
        rules: Sequence[str] = (),
        room_tokens: int | None = None,
    ) -> Generator[SummaryRequest, SummaryResult, EscalationResult]:
        """Ask plainly; if the answer is as long as the source, tightly; if that is too, cut the source.

        If the plain answer loses rules, a tight one is asked for, too; it stands if it is short enough and loses fewer.

        An empty answer is not asked for again. An answer longer than the target times the overage factor is cut there.

        Args:
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
        size = self._count(source)
        if not source:
            return EscalationResult("[Truncated from 0 tokens]", "fallback", None)
        too_long = max(1, size if limit_tokens is None else min(size, limit_tokens))
        request = SummaryRequest(source, self._requested(size, depth, room_tokens), depth, previous)
        result = yield request
        text, level = _words(result), "normal"
        is_long, lost = self._count(text) >= too_long, len(list(lost_rules(text, rules)))
        if text and (is_long or lost):
            target = self._requested(size, depth, room_tokens, is_aggressive=True)
            tight = yield replace(request, target_tokens=target, is_aggressive=True)
            if is_long or self._is_better(tight, rules, lost, too_long):
                result, text, level = tight, _words(tight), "aggressive"
        if not text or self._count(text) >= too_long:
            return EscalationResult(self._fallback(source, size, limit_tokens), "fallback", result)
        return self._capped(EscalationResult(text, level, result), depth)  # type: ignore[arg-type]  # one of LEVELS

    def _is_better(self, tight: SummaryResult, rules: Sequence[str], lost: int, too_long: int) -> bool:
        text = "" if tight.failure else trim(tight.text)
        return bool(text) and self._count(text) < too_long and len(list(lost_rules(text, rules))) < lost

    def _requested(self, size: int, depth: int, room_tokens: int | None, *, is_aggressive: bool = False) -> int:
        targets = (self.leaf_target_tokens, self.condensed_target_tokens)
        asked = requested_tokens(size, depth, is_aggressive, *targets, self.leaf_share)
        return asked if room_tokens is None else max(1, min(asked, room_tokens))

    def _count(self, text: str) -> int:
        return self.token_estimator.count([text])[0]

    def _fallback(self, source: str, size: int, limit_tokens: int | None) -> str:
        mark = f"\n[Truncated from {size} tokens]"
        if self.fallback_max_tokens is not None:
            most = self.fallback_max_tokens if limit_tokens is None else min(self.fallback_max_tokens, limit_tokens - 1)
            text = harmless_beginning(
                source, self.token_estimator, most_tokens=most, mark=mark[1:], directive_mark=DIRECTIVE_MARK + mark
            )
            return text if limit_tokens is None or self._count(text) < limit_tokens else ""
        if limit_tokens is None:
            return first_units(source, _FALLBACK_UNITS, "kept") + mark
        return self._cut(first_units(source, _FALLBACK_UNITS, "kept"), mark, limit_tokens - 1) or ""

    def _capped(self, pressed: EscalationResult, depth: int) -> EscalationResult:
        target = self.condensed_target_tokens if depth else self.leaf_target_tokens
        size, most = self._count(pressed.text), math.ceil(target * self.summary_max_overage_factor)
        if size > math.ceil(_WARN_FROM * target):
            _log.info("a summary of depth %d has %d tokens, %d were aimed at", depth, size, target)
        if size <= most:
            return pressed
        marks = (f"\n[Capped from {size} tokens to ~{most}]", f"\n[Capped to ~{most}]", "\n[Capped]", "")
        cuts = (self._cut(pressed.text, mark, most) for mark in marks)
        return EscalationResult(next((cut for cut in cuts if cut is not None), ""), "capped", pressed.result)

    def _cut(self, text: str, mark: str, most_tokens: int) -> str | None:
        """The beginning of a text with the mark behind it, within the tokens; None where the mark alone is too long."""
        if self.rules == "0.15":
            room = max(0, most_tokens - self._count(mark))
            cut = first_tokens(text, room, self.token_estimator) + mark
            return cut if self._count(cut) <= most_tokens else None
        room = max(0, _UNITS_PER_TOKEN * most_tokens - utf16_length(mark))
        if self._count(cut := first_units(text, room, "kept") + mark) <= most_tokens:
            return cut
        fits = bisect_right(
            range(room), most_tokens, key=lambda units: self._count(first_units(text, units, "kept") + mark)
        )
        return first_units(text, fits - 1, "kept") + mark if fits else None


def _words(result: SummaryResult) -> str:
    if result.failure is not None:
        raise result.failure
    return trim(result.text)
