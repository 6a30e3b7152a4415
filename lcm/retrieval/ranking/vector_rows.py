"""Rows of vectors on a grid on which their dot products are exact."""

from typing import Any

import numpy as np
import numpy.typing as npt

NOTHING = 1e-6
"""A vector that is shorter says nothing."""
_GRID = 2.0**20
_ROWS_AT_ONCE = 1024  # in double precision, they and a query lie in the processor's cache
_Numbers = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]


def on_grid(rows: _Numbers) -> _Numbers:
    """Rows of at most unit length, rounded to multiples of 2 ** -20: their dot products are exact in double precision,
    and so the same however many threads add them up."""
    rounded: _Numbers = np.round(rows * _GRID) / _GRID
    return rounded


def units(rows: npt.NDArray[Any], mean: _Numbers | None = None) -> Rows:
    """Rows of unit length, on the grid, which single precision holds exactly; what is next to nothing becomes nothing.

    Args:
        mean: taken away from each row first, in double precision.
    """
    found = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        part = part.copy() if mean is None else part - mean
        lengths = np.linalg.norm(part, axis=1, keepdims=True)
        part *= np.where(lengths > NOTHING, _GRID / np.maximum(lengths, NOTHING), 0.0)
        np.round(part, out=part)
        part /= _GRID
        found[start : start + _ROWS_AT_ONCE] = part
    return found


def dot_products(rows: Rows, query: _Numbers) -> _Numbers:
    """Of each row with a query, both on the grid: exact."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        np.dot(rows[part].astype(np.float64), query, out=found[part])
    return found
