"""A mean of few measured by people and many measured by a model: prediction-powered intervals.

A model's judgements of many queries give a mean with little noise and an unknown error; people's of few queries say how
large that error is. With y what people measure and f what the model does:

    mean = mean(y) + lambda * (mean(f of the others) - mean(f of those that people judged))

lambda = 0 is people's mean alone; the best lambda grows with the correlation of y and f, and is estimated from the same
queries. The interval is valid however wrong the model is; a useless one only makes it no narrower than people's own.

Source: Angelopoulos, Bates, Fannjiang, Jordan, Zrnic 2023, "Prediction-powered inference"; the lambda of Angelopoulos,
Duchi, Zrnic 2023, "PPI++".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean with its interval."""

    value: float
    low: float
    high: float
    weight: float
    """lambda: how much the model was listened to, in [0, 1]."""
    n: int
    """Queries that people judged."""
    others: int
    """Queries that the model alone judged."""


def powered_mean(
    people: Sequence[float],
    model: Sequence[float],
    others: Sequence[float],
    confidence: float = 0.95,
    weight: float | None = None,
) -> PoweredMean:
    """Estimate a mean over all queries.

    Args:
        people: shape (n,), of the queries that people judged.
        model: shape (n,), of the same queries by the model's judgements.
        others: shape (m,), of the queries that the model alone judged.
        weight: lambda, in [0, 1]; None = the best one. 0 is the classical interval of people's values alone.
    Raises:
        ValueError: if fewer than two queries were judged by people, or the model's values are not of the same queries.
    """
    y, f, g = (np.asarray(values, dtype=np.float64) for values in (people, model, others))
    n, m = len(y), len(g)
    if n < 2:
        raise ValueError(f"people must have judged at least 2 queries, got {n}")
    if len(f) != n:
        raise ValueError(f"model must hold one value for each of people's {n} queries, got {len(f)}")
    if m < 2:
        weight = 0.0
    elif weight is None:
        weight = _best_weight(y, f, g)
    rectified = y - weight * f
    variance = rectified.var(ddof=1) / n
    value = float(rectified.mean())
    if weight:
        value += weight * float(g.mean())
        variance += weight**2 * g.var(ddof=1) / m
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)
    return PoweredMean(value, value - half, value + half, weight, n, m)


def _best_weight(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> float:
    """cov(y, f) / ((1 + n / m) var(f)), the least variance, kept in [0, 1]."""
    everywhere = np.concatenate([f, g])
    if np.ptp(everywhere) == 0:  # its variance need not come out as 0
        return 0.0
    best = float(np.cov(y, f, ddof=1)[0, 1]) / ((1 + len(y) / len(g)) * float(everywhere.var(ddof=1)))
    return min(max(best, 0.0), 1.0)
