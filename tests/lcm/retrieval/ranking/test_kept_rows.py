"""Rows are made once, and their sums are those of all rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.retrieval.ranking.evidence import vector_evidence
from lcm.retrieval.ranking.evidence.vector_evidence import BlockSums, KeptRows, Places, Rows, dot_products, units

PLACES = st.sets(st.integers(0, 90), min_size=1)


def squares(numbers: Places) -> Rows:
    return np.stack([numbers, numbers * numbers], axis=1).astype(np.float32)


@given(asked=st.lists(PLACES, max_size=6), room=st.sampled_from([0, 91]))
@settings(max_examples=30, deadline=None)
def test_a_row_is_made_once(asked: list[set[int]], room: int) -> None:
    made: list[int] = []

    def make(numbers: Places) -> Rows:
        made.extend(numbers.tolist())
        return squares(numbers)

    rows = KeptRows(2, room)
    for one in asked:
        numbers = np.array(sorted(one))
        assert rows.of(numbers, make).tolist() == squares(numbers).tolist()
    assert len(made) == len(set(made))


@given(steps=st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_sums_are_those_of_all_rows_whatever_was_added_up_before(steps: list[list[tuple[int, int]]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vector_evidence, "_AT_ONCE", 4)
        sums = BlockSums()
        for step in steps:
            numbers, groups = np.array(step).T
            found = sums.of(numbers, groups, squares)
            assert set(found) == set(groups.tolist())
            for group, (count, total) in found.items():
                assert count == np.count_nonzero(groups == group)
                assert total.tolist() == squares(numbers[groups == group]).sum(axis=0).tolist()


def test_of_numbers_that_grow_only_the_last_block_is_added_up() -> None:
    made: list[int] = []

    def make(numbers: Places) -> Rows:
        made.append(len(numbers))
        return squares(numbers)

    sums, groups = BlockSums(), np.zeros(2000, np.int64)
    sums.of(np.arange(1500), groups[:1500], make)
    sums.of(np.arange(1501), groups[:1501], make)
    assert made == [1024, 476, 477]


def test_units_have_length_one_or_nothing_and_alike_rows_are_exactly_as_near() -> None:
    rng = np.random.default_rng(0)
    rows = np.tile(rng.normal(size=(3, 384)), (700, 1))
    rows[1] = 0.0
    found = units(rows)
    assert not found[1].any()
    assert np.linalg.norm(found[[0, 2]], axis=1) == pytest.approx([1, 1], abs=1e-5)
    near = dot_products(found, units(rng.normal(size=(1, 384)))[0].astype(np.float64))
    assert len(set(near[3::3].tolist())) == 1
