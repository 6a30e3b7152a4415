"""How sure a mean is, and whether a difference of two is more than chance."""

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

_BATCH = 250  # resamples drawn at once
_KEPT_DRAWS = 16_000_000  # of rows that are drawn again and again: a byte each
_KEPT_NUMBERS = 2_000_000  # of these, as they are multiplied by: eight bytes each
_TIE = 1e-12  # of the sum of magnitudes: sums of the same numbers in another order are the same sum


def bootstrap_means(
    values: npt.NDArray[np.float64],
    resamples: int,
    confidence: float,
    seed: int,
    clusters: npt.NDArray[np.int64] | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Percentile bootstrap intervals of the column means, the rows (queries) drawn with replacement.

    A resample is how often each query was drawn, so all measures of many resamples are one product of matrices, and
    what was drawn of so many queries serves every point of a sweep; a test compares with scipy's general routine.

    Args:
        values: shape (n, m), n queries, m measures.
        confidence: between 0 and 1, 0.95 for a 95 % interval.
        clusters: shape (n,), which queries are drawn together, as those of one conversation; None = each by itself. The
            mean of a resample is over the queries in it, however many these are.
    Returns:
        low and high, each of shape (m,). With fewer than two queries, or clusters, there is no interval: both are NaN.
    """
    if len(values) < 2 or (clusters is not None and len(np.unique(clusters)) < 2):
        return np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    tail = (1 - confidence) / 2
    low, high = np.quantile(_resampled_means(values, resamples, seed, clusters), [tail, 1 - tail], axis=1)
    return low, high


def bootstrap_ratio(
    parts: npt.NDArray[np.float64],
    wholes: npt.NDArray[np.float64],
    resamples: int,
    confidence: float,
    seed: int,
    clusters: npt.NDArray[np.int64] | None = None,
) -> tuple[float, float]:
    """Percentile bootstrap interval of mean(parts) / mean(wholes), whose rows are drawn together, as `bootstrap_means`.

    A resample whose whole is not above 0 has no ratio: it counts as infinitely large where its part is above 0, else as
    infinitely small, so that an interval over too small a whole is open instead of wrong.

    Args:
        parts: shape (n,).
        wholes: shape (n,), their mean above 0.
    Returns:
        low and high; an end may be infinite, and both are NaN as those of `bootstrap_means`.
    """
    if len(parts) < 2 or (clusters is not None and len(np.unique(clusters)) < 2):
        return float("nan"), float("nan")
    part, whole = _resampled_means(np.column_stack([parts, wholes]), resamples, seed, clusters)
    is_there = whole > 0
    ratios = np.where(is_there, part / np.where(is_there, whole, 1.0), np.where(part > 0, np.inf, -np.inf))
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def sign_flip_p_values(
    differences: npt.NDArray[np.float64],
    resamples: int,
    seed: int,
    clusters: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.float64]:
    """Two-sided p values of paired permutation tests of the column sums.

    If a query's two values could as well be swapped, its difference could as well have the other sign. p is the share
    of all assignments of signs that bring a sum as far from 0 as the one that was found. Where there are no more
    assignments than `resamples`, each is tried; otherwise as many are drawn, and p = (1 + as far) / (1 + drawn), which
    is never 0. Queries that differ in nothing change no sum and are left out; all columns share the drawn signs, so
    that 1,154 queries, 5 measures and 10,000 draws take a tenth of a second (a test compares with scipy's
    permutation_test).

    Args:
        differences: shape (n, m), 0 where a measure does not judge a query.
        clusters: shape (n,), which queries change signs together; None = each by itself.
    Returns:
        shape (m,), in (0, 1]; 1 for a column of zeros.
    """
    sums, _ = clustered(differences, clusters)
    sums = sums[(sums != 0).any(axis=1)]
    k, m = sums.shape
    found = np.abs(sums.sum(axis=0)) - _TIE * np.abs(sums).sum(axis=0)
    if 2**k <= resamples:
        bits = np.arange(2**k)[:, None] >> np.arange(k) & 1
        return np.asarray(_as_far(bits, sums, found) / 2**k)
    rng = np.random.default_rng(seed)
    hits = np.zeros(m)
    for start in range(0, resamples, _BATCH):
        hits += _as_far(rng.integers(0, 2, size=(min(_BATCH, resamples - start), k), dtype=np.int8), sums, found)
    return (1 + hits) / (1 + resamples)


def least_p_value(units: int, resamples: int) -> float:
    """The smallest p value that so many units, all different, can come to: 2 of 2**units assignments."""
    return max(2 * 0.5**units, 1 / (1 + resamples))


def holm(p_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Holm's step-down correction: the least p times m, the next times m - 1 ..., never falling, at most 1.

    NaN stands for a test that was not made: it stays NaN and does not count.
    Source: Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    adjusted = np.full(p_values.shape, np.nan)
    made = np.flatnonzero(~np.isnan(p_values))
    order = made[np.argsort(p_values[made], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted


def clustered(
    values: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Sums of the rows of each cluster, shape (c, m), and how many rows each has, shape (c,)."""
    if clusters is None:
        return values, np.ones(len(values), dtype=np.int64)
    _, position = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(position)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, position, values)
    return sums, sizes


def _resampled_means(
    values: npt.NDArray[np.float64], resamples: int, seed: int, clusters: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.float64]:
    """The column means of each resample, shape (m, resamples)."""
    sums, sizes = clustered(values, clusters)
    n = len(sums)
    summed = np.column_stack([sums, sizes])
    draws = (_drawn_once if n * resamples <= _KEPT_DRAWS else _drawn)(n, resamples, seed)
    with _blas().limit(limits=1):
        totals = np.concatenate([drawn.astype(np.float64, copy=False) @ summed for drawn in draws])
    return np.ascontiguousarray((totals[:, :-1] / totals[:, -1:]).T)


def _drawn(n: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.uint8]]:
    """How often each of n rows was drawn in each resample, some resamples at a time, shape (resamples, n); of more than
    255 rows none is drawn that often."""
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, _BATCH):
        drawn = rng.integers(0, n, size=(min(_BATCH, resamples - start), n))
        offsets = np.arange(len(drawn))[:, None] * n
        counts = np.bincount((drawn + offsets).ravel(), minlength=len(drawn) * n)
        yield counts.reshape(len(drawn), n).astype(np.uint8)


@lru_cache(maxsize=16)
def _drawn_once(n: int, resamples: int, seed: int) -> list[npt.NDArray[Any]]:
    """Keep the draws of `_drawn` for all points of a sweep; small ones as float64, ready to be multiplied."""
    kind = np.float64 if n * resamples <= _KEPT_NUMBERS else np.uint8
    return [part.astype(kind, copy=False) for part in _drawn(n, resamples, seed)]


def _as_far(
    bits: npt.NDArray[np.integer[Any]], sums: npt.NDArray[np.float64], found: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """How many assignments of signs (rows, 1 = swapped) bring each column's sum as far from 0 as `found`."""
    signs = 1.0 - 2.0 * bits
    with _blas().limit(limits=1):
        reached = np.abs(signs @ sums)
    return np.asarray((reached >= found).sum(axis=0))


@cache
def _blas() -> ThreadpoolController:
    """Whose threads wait for each other longer than one of them takes for products as small as these."""
    return ThreadpoolController()
