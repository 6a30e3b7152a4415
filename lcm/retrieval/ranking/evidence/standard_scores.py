"""Standard scores: how many standard deviations a value lies above the mean."""

import numpy as np
import numpy.typing as npt

_FLAT = 1e-9  # spread below which nothing stands out
_Numbers = npt.NDArray[np.float64]


def standardised(values: _Numbers, among: _Numbers | None = None) -> _Numbers:
    """(x - mean) / standard deviation; 0 where all are equal.

    Args:
        among: whose mean and deviation count; None = those of the values.
    """
    counted = values if among is None else among
    spread = counted.std() if len(counted) else 0.0
    return (values - counted.mean()) / spread if spread > _FLAT else np.zeros_like(values)
