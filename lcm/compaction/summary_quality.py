"""How well a summary stands for its turns, by an embedder."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors

Floats = npt.NDArray[np.floating[Any]]


class SummaryQuality(NamedTuple):
    """How well a summary stands for its turns: cosines in [-1, 1]."""

    align: float
    """Of the summary to the mean of its turns."""
    cover: float
    """Of the summary to each turn, the negative ones counted as 0, on average."""

    @property
    def confidence(self) -> float:
        """(align + cover) / 2, clamped to [0, 1]."""
        return clamped((self.align + self.cover) / 2)


def summary_quality(turns: Vectors, summary: Vectors) -> SummaryQuality:
    """Hold a summary against its turns.

    Args:
        turns: shape (n, dim), n >= 1: the turns as the summarizer was shown them, embedded.
        summary: shape (dim,).

    Source: libravdb memory 1.4.4; the mathematical reference of 1.3.5 knows only what each summarizer says itself.
    """
    mean = turns.astype(np.float32).mean(axis=0, dtype=np.float32)
    cover = sum(max(0.0, cosine(summary, turn)) for turn in turns) / len(turns)
    return SummaryQuality(cosine(summary, mean), cover)


def cosine(one: Floats, other: Floats) -> float:
    """In double precision; 0 where a vector is zero, or the widths differ."""
    if one.shape != other.shape:
        return 0.0
    first, second = one.astype(np.float64), other.astype(np.float64)
    length = math.sqrt(float(first @ first)) * math.sqrt(float(second @ second))
    return float(first @ second) / length if length else 0.0


def clamped(value: float) -> float:
    """To [0, 1]; what is no number counts as 0."""
    return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))
