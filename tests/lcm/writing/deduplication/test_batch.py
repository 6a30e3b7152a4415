"""Twins among the candidates of one extraction."""

from collections import Counter

import numpy as np

from lcm.writing.deduplication import KeepAll, TwinsOnly, twins
from tests.lcm.refusals import assert_refused
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
    assert_refused(TwinsOnly, "be in [-1, 1]", batch_threshold=[-1.1, 1.1, float("nan")])


def test_many_rows_are_compared_as_few_are() -> None:
    angles = np.arange(600) * 0.7  # 600 rows are worked out in several blocks
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    first: list[int | None] = []
    for j, row in enumerate(rows):
        first.append(next((i for i in range(j) if first[i] is None and rows[i] @ row > 0.95), None))
    assert twins(rows, 0.95) == first
