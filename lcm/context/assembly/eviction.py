"""Which of the items before the fresh tail fit into what it leaves of a budget.

Source: lossless-claw 0.6.3.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt


def newest_that_fit(evictable: Sequence[int], tokens: Callable[[int], int], budget_tokens: int) -> list[int]:
    """Walk back from the newest and stop at the first that does not fit; nothing older is looked at."""
    kept: list[int] = []
    for place in reversed(evictable):
        budget_tokens -= tokens(place)
        if budget_tokens < 0:
            break
        kept.append(place)
    return kept[::-1]


def best_that_fit(
    evictable: Sequence[int], tokens: Callable[[int], int], scores: npt.NDArray[np.float64], budget_tokens: int
) -> list[int]:
    """Take the best scored first, of equals the newest, and pass over what does not fit.

    Args:
        evictable: places of items, rising.
        tokens: of the item at a place.
        scores: shape (n,): one for each of `evictable`.
        budget_tokens: what may be spent.
    """
    kept: list[int] = []
    for at in np.lexsort((-np.arange(len(evictable)), -scores)):
        place = evictable[at]
        if (cost := tokens(place)) <= budget_tokens:
            budget_tokens -= cost
            kept.append(place)
    return sorted(kept)
