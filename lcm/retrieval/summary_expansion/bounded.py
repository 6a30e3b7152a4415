"""What lies beneath summaries that were found: a policy around an assembly, no part of it.

Source: the summary expansion of libravdb memory 1.3.17, where nothing calls it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.checks import check_range


class ExpandableSummary(NamedTuple):
    """A summary in an answer that could be expanded."""

    summary_id: str
    confidence: float
    depth: int = 0
    """How many expansions led to it."""


class SummaryChild(NamedTuple):
    """A message or summary that lies directly beneath a summary."""

    item_id: str
    score: float
    tokens: float
    """0 or less: nobody counted them, and it is left out."""


class ExpandedChild(NamedTuple):
    """A child of an expanded summary, as it is shown."""

    item_id: str
    score: float
    parent_id: str
    depth: int


Children = Callable[[str, int], Sequence[SummaryChild]]
"""A summary's id and how deep to look, to what lies beneath it."""


@dataclass(frozen=True, slots=True)
class SummaryExpansion:
    """Adds to summaries that are sure of themselves what lies beneath them, while it fits."""

    confidence_threshold: float = 0.7
    """A summary that is less sure stays closed."""
    depth: int = 2
    """How deep a summary is expanded."""
    token_budget: float | None = None
    """Of all that is added. None = no bound of its own."""
    penalty_factor: float = 0.85
    """What a child's score is multiplied by."""

    def __post_init__(self) -> None:
        check_range(self, "confidence_threshold", ge=0, le=1)
        check_range(self, "penalty_factor", ge=0)
        check_range(self, "depth", ge=1)
        check_range(self, "token_budget", ge=0, or_null=True)

    def expand(
        self, summaries: Iterable[ExpandableSummary], children: Children, room_tokens: float = math.inf
    ) -> list[ExpandedChild]:
        """Expand summaries in the order given; a child that does not fit is passed over.

        Args:
            summaries: best first.
            children: asked of each summary that is opened.
            room_tokens: what there is; `token_budget` may be less.
        """
        left = room_tokens if self.token_budget is None else min(room_tokens, self.token_budget)
        expanded: list[ExpandedChild] = []
        for summary in summaries:
            if left <= 0:
                break
            if not summary.confidence >= self.confidence_threshold:
                continue
            for child in children(summary.summary_id, self.depth):
                if not child.tokens > 0:
                    continue
                cost = max(1, math.floor(child.tokens))
                if cost > left:
                    continue
                left -= cost
                score = min(1.0, max(0.0, child.score * self.penalty_factor))
                expanded.append(ExpandedChild(child.item_id, score, summary.summary_id, summary.depth + 1))
        return expanded
