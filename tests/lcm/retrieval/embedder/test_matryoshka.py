"""Truncation: a prefix of a vector, of unit length again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.embedder.matryoshka import truncate


def test_a_prefix_is_scaled_to_unit_length() -> None:
    cut = truncate(np.array([[3.0, 4.0, 12.0]], np.float32), 2)
    assert cut.tolist() == [[np.float32(3) / np.float32(5), np.float32(4) / np.float32(5)]]


def test_a_prefix_without_direction_stays_as_it_is() -> None:
    assert truncate(np.array([[0.0, 0.0, 1.0], [1e-10, 0.0, 1.0]], np.float32), 2).tolist() == [
        [0.0, 0.0],
        [float(np.float32(1e-10)), 0.0],
    ]


@pytest.mark.parametrize(("width", "kept"), [(-1, 0), (0, 0), (2, 2), (9, 3)])
def test_no_width_is_too_small_or_too_large(width: int, kept: int) -> None:
    assert truncate(np.ones((4, 3), np.float32), width).shape == (4, kept)


@given(st.integers(0, 2**16), st.integers(1, 40))
def test_the_argument_is_left_alone_and_rows_do_not_depend_on_each_other(seed: int, width: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((5, 32)).astype(np.float32)
    before = vectors.copy()
    together = truncate(vectors, width)
    assert np.array_equal(vectors, before)
    assert np.array_equal(np.concatenate([truncate(vectors[i : i + 1], width) for i in range(5)]), together)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
