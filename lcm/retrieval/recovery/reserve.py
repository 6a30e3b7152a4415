"""How much of a budget is kept for what was recovered."""

import math
from dataclasses import dataclass

from lcm.checks import check_range


@dataclass(frozen=True, slots=True)
class Reserve:
    """min(budget, max(floor(fraction * budget), least_tokens), most_tokens), and of a question that compares two events
    min(budget, max(reserve, ceil(comparison_factor * reserve))): it needs a witness of each.

    Source: libravdb memory 1.4.4.
    """

    fraction: float = 0.1
    least_tokens: int = 16
    most_tokens: int = 128
    comparison_factor: float = 1.8
    """1 = a comparison gets no more than another question."""

    def __post_init__(self) -> None:
        check_range(self, "fraction", ge=0, le=1)
        if not 0 <= self.least_tokens <= self.most_tokens:
            raise ValueError(f"least_tokens must be in [0, most_tokens = {self.most_tokens}], got {self.least_tokens}")
        check_range(self, "comparison_factor", ge=1)

    def tokens(self, budget_tokens: int, *, is_comparison: bool) -> int:
        if budget_tokens <= 0:
            return 0
        reserve = min(
            budget_tokens, max(math.floor(self.fraction * budget_tokens), self.least_tokens), self.most_tokens
        )
        if is_comparison:
            reserve = min(budget_tokens, max(reserve, math.ceil(self.comparison_factor * reserve)))
        return reserve
