"""What fusions weigh: shares of one, how recent a document is, how good a summary, what each further branch counts."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Decay
from lcm.retrieval.source.candidates import further_branches


def shares(*weights: float) -> list[float]:
    """Each weight divided by their sum, which is not 0."""
    whole = sum(weights)
    return [weight / whole for weight in weights]


def share(columns: Columns, name: str, least: float = 0.0) -> Numbers:
    """A column within [least, 1]; what is missing or no number counts as 0."""
    values = columns.numbers(name)
    return np.clip(np.where(np.isnan(values), 0.0, values), least, 1.0)


def recency(decay: Decay, columns: Columns) -> Numbers:
    """The multiplier of the decay; 1 for what is authored, which has no age."""
    return np.where(columns.are("kind", "authored"), 1.0, decay.multiplier(columns))


def summary_quality(delta: float, columns: Columns) -> Numbers | float:
    """Q = 1 - delta decay_rate for a summary, 1 for anything else; in [1 - delta, 1].

    A decay rate is 1 - the confidence of whoever wrote the summary; one that is no number counts as 0.

    Source: libravdb memory 1.3.5, mathematical reference, section 1.
    """
    if delta == 0:
        return 1.0
    return np.where(columns.are("kind", "summary"), 1.0 - delta * share(columns, "decay_rate"), 1.0)


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
