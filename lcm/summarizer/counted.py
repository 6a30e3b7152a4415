"""A summary whose maker says how many tokens it has."""

from dataclasses import dataclass

from lcm.records import SummaryResult


@dataclass(frozen=True, slots=True)
class CountedResult(SummaryResult):
    """A result with its maker's own count: words, or what a model emitted."""

    tokens: int = 0
    """0: not said."""
