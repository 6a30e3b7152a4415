"""Truncation: a prefix of a vector, of unit length again."""

import numpy as np

from lcm.retrieval.vector_index.hnsw_tiers import truncate


def test_a_prefix_without_direction_stays_as_it_is() -> None:
    assert truncate(np.array([[0.0, 0.0, 1.0], [1e-10, 0.0, 1.0]], np.float32), 2).tolist() == [
        [0.0, 0.0],
        [float(np.float32(1e-10)), 0.0],
    ]


def test_no_width_is_too_small_or_too_large() -> None:
    assert [truncate(np.ones((4, 3), np.float32), width).shape[1] for width in (-1, 0, 2, 9)] == [0, 0, 2, 3]
