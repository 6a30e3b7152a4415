"""What the comparisons of searches have in common: sizes that make sense, and answers that must agree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.timing import Comparison, DisagreementError, Target, compared_times, take_turns
from lcm.checks import check_range
from lcm.retrieval.indexing import Ranked

TARGET = Target("at most", 1.2)

Scores = Sequence[Sequence[float] | npt.NDArray[Any]]
"""Of each query, best first."""
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Many queries in one call to an index, against the library below it."""

    documents: int
    queries: int
    k: int

    def __post_init__(self) -> None:
        check_range(self, "documents", "queries", "k", ge=1)
        if self.k > self.documents:
            raise ValueError(f"k must be <= documents ({self.documents}), got {self.k}")

    @property
    def ids(self) -> list[str]:
        return [f"d{i}" for i in range(self.documents)]

    def compared(
        self,
        name: str,
        ours: Callable[[], Sequence[Ranked]],
        bare: Callable[[], _Found],
        scores_of: Callable[[_Found], Scores],
        repeats: int,
        *,
        tolerance: float,
        target: Target | None,
        queries: int | None = None,
        facts: Callable[[], Mapping[str, float]] = dict,
    ) -> list[Comparison]:
        """Time both sides, whose scores must be the same.

        Args:
            name: of the comparison.
            ours: the search of the index.
            bare: that of the library.
            scores_of: what the library found, as scores; not timed.
            repeats: rounds.
            tolerance: of a score.
            target: what the ratio should be.
            queries: how many are asked, where not all are.
            facts: what else was found out, asked for when all is warm.
        """
        rounds = take_turns(
            lambda: ours, lambda: bare, lambda mine, theirs: check_scores(mine, scores_of(theirs), tolerance), repeats
        )
        told = {"documents": self.documents, "k": self.k, **facts()}
        return [compared_times(name, "µs a query", 1e6 / (queries or self.queries), rounds, target, told)]


def check_scores(ours: Sequence[Ranked], bare: Scores, tolerance: float) -> None:
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
