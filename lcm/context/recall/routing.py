"""Whether a request is answered at once, expanded a little, or handed to somebody who reads.

estimate = ceil(220 · candidates · (1.9 with messages) · (1 + 0.65 · (depth - 1)) · (1.35 over a long time) · (1.25 in
several hops)), in tokens; risk = estimate / cap.

Source: lossless-claw 0.6.3.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

Action = Literal["answer_directly", "expand_shallow", "delegate_traversal"]
Intent = Literal["query_probe", "explicit_expand"]
Risk = Literal["low", "moderate", "high"]

_DEFAULT_DEPTH, _MAX_DEPTH = 3, 10
_DIRECT_DEPTH, _DIRECT_CANDIDATES = 2, 1
_MODERATE_RISK, _HIGH_RISK = 0.35, 0.7
_SUMMARY_TOKENS = 220
_MESSAGES_FACTOR, _DEPTH_GROWTH, _LONG_TIME_FACTOR, _HOPS_FACTOR = 1.9, 0.65, 1.35, 1.25
_HOPS_DEPTH, _HOPS_CANDIDATES = 3, 5
_LONG_TIME_YEARS = 2
_LARGEST_CAP = 2**53 - 1

_LONG_TIME = re.compile(
    r"\b(?:last|past)\s+(?:month|quarter|year)s?\b"
    r"|\b(?:over|across|throughout)\s+(?:time|months|quarters|years)\b"
    r"|\b(?:timeline|chronology|history|long[-\s]?term)\b"
    r"|\bbetween\s+[^.]{0,40}\s+and\s+[^.]{0,40}\b",
    re.IGNORECASE,
)
_HOPS = re.compile(
    r"\broot\s+cause\b|\bcausal\s+chain\b|\bchain\s+of\s+events\b"
    r"|\bmulti[-\s]?(?:hop|step)\b|\bcross[-\s]?summary\b|\bhow\s+did\b.+\blead\s+to\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """How a request is answered (at once, expanded or delegated), and the figures that decided it."""

    action: Action
    depth: int
    candidates: int
    estimated_tokens: int
    token_cap: int
    risk_ratio: float
    risk: Risk
    is_over_long_time: bool
    is_in_several_hops: bool
    is_simple_probe: bool


def route(
    intent: Intent,
    candidates: int,
    token_cap: float,
    *,
    query: str = "",
    depth: int | None = None,
    has_messages: bool = False,
) -> RoutingDecision:
    """Decide.

    Args:
        intent: a question by its words, or an expansion of named summaries.
        candidates: summaries that may be expanded.
        token_cap: of the whole result; infinity = none.
        query: the words.
        depth: as asked for, clamped to 1-10; None = 3.
        has_messages: raw messages are wanted too.
    """
    depth = _DEFAULT_DEPTH if depth is None else min(max(depth, 1), _MAX_DEPTH)
    candidates = max(0, candidates)
    cap = max(1, int(token_cap)) if math.isfinite(token_cap) else _LARGEST_CAP
    long_time = is_over_long_time(query)
    hops = depth >= _HOPS_DEPTH or candidates >= _HOPS_CANDIDATES or _HOPS.search(query) is not None
    each = _SUMMARY_TOKENS * (_MESSAGES_FACTOR if has_messages else 1) * (1 + (depth - 1) * _DEPTH_GROWTH)
    each = each * (_LONG_TIME_FACTOR if long_time else 1) * (_HOPS_FACTOR if hops else 1)
    estimate = math.ceil(each * candidates)
    ratio = estimate / cap
    risk: Risk = "high" if ratio >= _HIGH_RISK else "moderate" if ratio >= _MODERATE_RISK else "low"
    is_simple = (
        intent == "query_probe"
        and 0 < candidates <= _DIRECT_CANDIDATES
        and depth <= _DIRECT_DEPTH
        and risk == "low"
        and not (long_time or hops)
    )
    action: Action = "expand_shallow"
    if candidates == 0 or is_simple:
        action = "answer_directly"
    elif risk == "high" or (long_time and hops):
        action = "delegate_traversal"
    return RoutingDecision(action, depth, candidates, estimate, cap, ratio, risk, long_time, hops, is_simple)


def is_over_long_time(query: str) -> bool:
    """Say whether the words speak of months or years, by name or by two years that lie apart."""
    if _LONG_TIME.search(query):
        return True
    years = [int(year) for year in _YEAR.findall(query)]
    return len(years) > 1 and max(years) - min(years) >= _LONG_TIME_YEARS
