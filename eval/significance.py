"""How sure a mean is."""

import numpy as np
import numpy.typing as npt

_BATCH = 250  # resamples drawn at once


def bootstrap_means(
    values: npt.NDArray[np.float64], resamples: int, confidence: float, seed: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Percentile bootstrap intervals of the column means, the rows (queries) drawn with replacement.

    A resample is how often each query was drawn, so all measures of many resamples are one product: for 1,154 queries,
    22 measures and 1,000 resamples 21-28 ms, where scipy's general routine takes 61-133 in the same runs and its import
    another half second (a test compares the two).

    Args:
        values: shape (n, m), n queries, m measures.
        confidence: between 0 and 1, 0.95 for a 95 % interval.
    Returns:
        low and high, each of shape (m,). With fewer than two queries there is no interval: both are NaN.
    """
    n, m = values.shape
    if n < 2:
        return np.full(m, np.nan), np.full(m, np.nan)
    rng = np.random.default_rng(seed)
    means = []
    for start in range(0, resamples, _BATCH):
        drawn = rng.integers(0, n, size=(min(_BATCH, resamples - start), n))
        offsets = np.arange(len(drawn))[:, None] * n
        counts = np.bincount((drawn + offsets).ravel(), minlength=len(drawn) * n).reshape(len(drawn), n)
        # Not BLAS, whose last bits depend on the number of threads.
        means.append(np.einsum("rq,qm->rm", counts.astype(np.float64), values) / n)
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return low, high
