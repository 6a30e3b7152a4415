"""How sure a mean is."""

import numpy as np
import numpy.typing as npt
from scipy.stats import bootstrap


def bootstrap_means(
    values: npt.NDArray[np.float64], resamples: int, confidence: float, seed: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Percentile bootstrap intervals of the column means, the rows (queries) drawn with replacement.

    Args:
        values: shape (n, m), n queries, m measures.
        confidence: between 0 and 1, 0.95 for a 95 % interval.
    Returns:
        low and high, each of shape (m,). With fewer than two queries there is no interval: both are NaN.
    """
    if len(values) < 2:
        return np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    interval = bootstrap(
        (values,),
        np.mean,
        axis=0,
        vectorized=True,
        n_resamples=resamples,
        batch=100,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return np.asarray(interval.low), np.asarray(interval.high)
