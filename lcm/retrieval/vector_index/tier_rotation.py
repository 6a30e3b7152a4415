"""Turn vectors so that their first numbers tell the most: for embedders whose own first numbers do not.

The axes are the eigenvectors of the documents' second moments, largest first (a principal component analysis about
the origin, so that cosines stay: a rotation is orthogonal). Ours.

Equal vectors give equal axes and a query the same turned row whatever stands beside it: what is summed is rounded to
a grid on which float64 sums are exact, as `lcm.retrieval.vector_index.exact` explains.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors

_MOMENT_GRID = 2.0**11  # products are multiples of 2**-22: sums of up to 2**30 of them are exact
_AXIS_GRID = 2.0**26


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """The first axes of a rotation."""

    axes: npt.NDArray[np.float64]
    """Shape (width, dim): orthonormal rows, multiples of 2**-26."""
    learnt_from: int
    """Vectors."""

    def rotated(self, vectors: Vectors) -> npt.NDArray[np.float64]:
        """Shape (n, width): the coordinates of gridded rows along the axes."""
        products: npt.NDArray[np.float64] = vectors.astype(np.float64) @ self.axes.T
        return products

    def first(self, width: int) -> "Rotation":
        return Rotation(np.ascontiguousarray(self.axes[:width]), self.learnt_from)


@dataclass(frozen=True, slots=True)
class RotationRule:
    """When to learn a rotation: from so many vectors on, and again when there are `growth` times as many."""

    learnt_from: int
    growth: float

    def is_due(self, learnt: Rotation | None, vectors: int) -> bool:
        if vectors < self.learnt_from:
            return False
        return learnt is None or vectors >= self.growth * learnt.learnt_from


def learn(vectors: Vectors) -> Rotation:
    """Learn all axes from unit vectors.

    Raises:
        numpy.linalg.LinAlgError: if the eigenvectors were not found.
    """
    rows = np.rint(vectors.astype(np.float64) * _MOMENT_GRID) / _MOMENT_GRID
    _, columns = np.linalg.eigh(rows.T @ rows)
    axes = np.ascontiguousarray(columns[:, ::-1].T)
    # An eigenvector is known up to its sign.
    largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=1)[:, np.newaxis], axis=1)
    return Rotation(np.rint(axes * np.where(largest < 0, -1.0, 1.0) * _AXIS_GRID) / _AXIS_GRID, len(vectors))
