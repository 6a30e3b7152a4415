"""What fits into a budget: the longest prefix, or whatever still fits.

Source: the packing rules of libravdb memory 1.3.5.
"""

from collections.abc import Iterable, Sequence


def longest_prefix(costs: Iterable[float], budget_tokens: float) -> int:
    """How many of the first items fit; the first that does not ends the walk, however small those behind it are."""
    used = 0.0
    taken = 0
    for cost in costs:
        if used + cost > budget_tokens:
            break
        used += cost
        taken += 1
    return taken


def first_fit(costs: Sequence[float], budget_tokens: float) -> list[int]:
    """The places of the items that fit, each taken if it does beside those before it."""
    used = 0.0
    taken = []
    for place, cost in enumerate(costs):
        if used + cost <= budget_tokens:
            used += cost
            taken.append(place)
    return taken
