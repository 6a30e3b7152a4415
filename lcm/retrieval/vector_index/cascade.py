"""From narrow to full width: each query goes down until a width answers well enough.

Source: libravdb memory 1.3.5 and 1.4.4 (its thresholds are inclusive; the best of nothing is 0).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.retrieval.indexing import Ranked

Numbers = npt.NDArray[np.int64]
"""Which queries of a batch are asked."""


class StepResult(NamedTuple):
    """The answer of one width of a cascade to one query."""

    answer: Ranked
    evidence: float
    """What is held against the width's threshold: its best score, or another measure of how sure it is."""
    is_by_graph: bool = False
    """Not every vector was looked at."""


class Step(NamedTuple):
    """What a query met at one width on its way."""

    place: int
    """Of the width, from 0: the narrowest."""
    evidence: float
    """0 where nothing was found."""
    is_exit: bool
    is_by_graph: bool = False
    """Not every vector of the width was looked at."""


class Descent(NamedTuple):
    """The way of one query down the widths of a cascade."""

    answer: Ranked
    steps: tuple[Step, ...]
    """The last is the exit."""


AskWidth = Callable[[Numbers], Sequence[StepResult]]
"""Asks a width some queries of a batch; one `StepResult` each, in their order."""


def descend(
    queries: int, widths: Sequence[AskWidth], thresholds: Sequence[float], is_late: Callable[[], bool] | None = None
) -> list[Descent]:
    """Ask the narrowest width all queries, and each next one those that it left open.

    A query is done where a width found something and its evidence is >= the threshold; the last width's answer is
    taken as it is, and always asked for.

    Args:
        queries: how many there are.
        widths: narrowest first, at least one.
        thresholds: one a width but the last.
        is_late: asked before each width but the last, which is gone to at once when it says yes; None = never late.
    """
    answers: list[Ranked] = [([], [])] * queries
    trails: list[list[Step]] = [[] for _ in range(queries)]
    waiting = np.arange(queries)
    last = len(widths) - 1
    for place, ask in enumerate(widths):
        if place < last and is_late is not None and is_late():
            continue
        if not len(waiting):
            break
        left = []
        for number, (answer, evidence, is_by_graph) in zip(waiting.tolist(), ask(waiting), strict=True):
            is_exit = place == last or (bool(answer[0]) and evidence >= thresholds[place])
            trails[number].append(Step(place, evidence if answer[0] else 0.0, is_exit, is_by_graph))
            if is_exit:
                answers[number] = answer
            else:
                left.append(number)
        waiting = np.array(left, np.int64)
    return [Descent(answer, tuple(steps)) for answer, steps in zip(answers, trails, strict=True)]
