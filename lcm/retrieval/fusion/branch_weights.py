"""What the branches beside dense and lexical weigh in a fusion."""

from collections.abc import Mapping

import polars as pl

from lcm.retrieval.source.candidates import further_branches


def further_weights(frame: pl.DataFrame, weights: Mapping[str, float]) -> dict[str, float]:
    """Branch -> weight, of every further branch that a frame has; one that is not named weighs 1.

    Raises:
        ValueError: if a weight names no branch of the frame.
    """
    names = further_branches(frame)
    for name in weights:
        if name not in names:
            remedy = f"choose from: {', '.join(names)}" if names else "choose source=branches, which has some"
            raise ValueError(f"weights.{name} names no branch that the source has beside dense and lexical; {remedy}")
    return {name: weights.get(name, 1.0) for name in names}
