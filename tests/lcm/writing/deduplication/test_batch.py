"""Twins among the candidates of one extraction."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lcm.writing.deduplication.batch import TwinsOnly, twins
from lcm.writing.deduplication.none import KeepAll
from tests.lcm.writing.admission.tables import TOWARDS, Table, at_cosine, candidate, document


def test_only_a_cosine_above_the_threshold_makes_a_twin() -> None:
    rows = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert (twins(rows, 0.6), twins(rows, 0.59)) == ([None, None], [None, 0])


def test_without_a_model_everything_but_twins_is_created() -> None:
    table = Table().holding((document("d", "the same"), 1.0))
    assert TwinsOnly().judge(candidate("the same"), TOWARDS, table, incidents=Counter()).action == "create"
    assert TwinsOnly().twins(np.concatenate([at_cosine(1.0), at_cosine(0.9)])) == [None, 0]
    assert TwinsOnly().merge(document("d", "the same"), candidate("the same")) is None
    assert KeepAll().twins(np.concatenate([TOWARDS, TOWARDS])) == [None, None]
    for threshold in (-1.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"batch_threshold must be in \[-1, 1\]"):
            TwinsOnly(threshold)


@given(
    rows=arrays.arrays(np.float64, st.tuples(st.integers(0, 8), st.just(3)), elements=st.integers(-3, 3)),
    threshold=st.sampled_from([-0.5, 0.0, 0.5, 0.85]),
)
def test_every_twin_is_near_an_earlier_one_that_is_its_own(rows: np.ndarray, threshold: float) -> None:
    first = twins(rows, threshold)
    lengths = np.linalg.norm(rows, axis=1)
    own = [i for i, twin in enumerate(first) if twin is None]
    for j, twin in enumerate(first):
        near = [i for i in own if i < j and rows[i] @ rows[j] > (threshold + 1e-9) * lengths[i] * lengths[j]]
        if twin is not None:
            assert twin < j
            assert first[twin] is None
            assert near[:1] in ([], [twin]) or rows[twin] @ rows[j] > (threshold - 1e-9) * lengths[twin] * lengths[j]
        else:
            assert not [i for i in near if lengths[i] * lengths[j] > 0]


def test_many_rows_are_compared_as_few_are() -> None:
    angles = np.arange(600) * 0.7  # 600 rows are worked out in several blocks
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    first: list[int | None] = []
    for j, row in enumerate(rows):
        first.append(next((i for i in range(j) if first[i] is None and rows[i] @ row > 0.95), None))
    assert twins(rows, 0.95) == first
