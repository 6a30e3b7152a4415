"""What stays at hand of a talk is what is worked out anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.retrieval.ranking.evidence import rows_at_hand
from lcm.retrieval.ranking.evidence.haystack import Places
from lcm.retrieval.ranking.evidence.rows_at_hand import RowsAtHand
from lcm.retrieval.ranking.vector_rows import Rows

PLACES = st.sets(st.integers(0, 11), min_size=1)


@given(asked=st.lists(PLACES, max_size=6))
@settings(max_examples=30, deadline=None)
def test_a_row_is_made_once_until_there_are_too_many(asked: list[set[int]]) -> None:
    made: list[int] = []

    def make(numbers: Places) -> Rows:
        made.extend(numbers.tolist())
        return np.stack([numbers, numbers * numbers], axis=1).astype(np.float32)

    for most in (12, 4):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rows_at_hand, "_MOST", most)
            rows = RowsAtHand(12, 2)
            made.clear()
            for one in asked:
                numbers = np.array(sorted(one))
                assert rows.of(numbers, make).tolist() == [[number, number * number] for number in numbers]
        assert most < 12 or len(made) == len(set(made))
