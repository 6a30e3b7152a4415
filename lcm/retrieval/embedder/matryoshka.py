"""The first numbers of a vector as a vector: what embedders trained as Matryoshka dolls are made for.

Source: libravdb memory 1.3.5 and 1.4.4 (widths 64, 256 and 768 of one nomic vector).
"""

import numpy as np

from lcm.protocols.models import Vectors

_SHORTEST = 1e-9


def truncate(vectors: Vectors, width: int) -> Vectors:
    """Cut vectors to their first `width` numbers and scale each to unit length.

    u = v[:width] / |v[:width]|, the length summed in float64, the division in float32. Where the length is below 1e-9
    nothing tells a direction, and the row stays as it was cut.

    Args:
        vectors: shape (n, dim), float32; rows need not have unit length.
        width: more than `dim` keeps all of a row, 0 or less nothing.
    Returns:
        shape (n, min(width, dim)), float32.
    """
    cut = np.array(vectors[:, : max(width, 0)], np.float32, order="C")
    lengths = np.sqrt(np.sum(cut.astype(np.float64) ** 2, axis=1))
    told = lengths >= _SHORTEST
    cut[told] /= lengths[told, np.newaxis].astype(np.float32)
    return cut
