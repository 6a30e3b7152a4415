"""What the comparisons of searches have in common: sizes that make sense, and answers that must agree."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eval.benchmark.timing import DisagreementError, Target
from lcm.retrieval.indexing import Ranked

TARGET = Target("at most", 1.2)


def check_sizes(documents: int, queries: int, k: int) -> None:
    for name, value in (("documents", documents), ("queries", queries), ("k", k)):
        if value < 1:
            raise ValueError(f"{name} must be >= 1, got {value}")
    if k > documents:
        raise ValueError(f"k must be <= documents ({documents}), got {k}")


def check_scores(ours: Sequence[Ranked], bare: Sequence[Sequence[float] | npt.NDArray[Any]], tolerance: float) -> None:
    """Both sides must have the same score at every rank; which of two equal documents it is may differ.

    Raises:
        DisagreementError: if they have not.
    """
    same = len(ours) == len(bare) and all(
        len(mine) == len(theirs) and np.allclose(mine, theirs, rtol=0, atol=tolerance)
        for (_, mine), theirs in zip(ours, bare, strict=True)
    )
    if not same:
        raise DisagreementError("the index and the bare search gave different scores")
