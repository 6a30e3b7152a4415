"""The importance weight; the vectors of the original are in tests/golden."""

import math

import pytest

from lcm.retrieval.ranking.stages.scores import ImportanceWeight
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import rows, scored


def test_importance_scales_the_score() -> None:
    found = scored(ImportanceWeight(), score=[0.8] * 5, importance=[0.0, 0.5, 1.0, None, math.nan])
    assert found == pytest.approx([0.8 * 0.7, 0.8 * 0.85, 0.8, 0.8 * 0.91, 0.8 * 0.7])
    assert scored(ImportanceWeight(0.2, 0.8), score=[0.5], importance=[0.5]) == [pytest.approx(0.5 * 0.6)]


def test_no_score_leaves_the_unit_interval() -> None:
    assert scored(ImportanceWeight(), score=[0.9, 0.9, math.nan], importance=[9.0, -9.0, 0.5]) == [1.0, 0.0, 0.0]


def test_the_important_come_first_among_equals() -> None:
    after = ImportanceWeight()(rows(importance=[0.1, 0.2]), documents_batch([]))
    assert after["document_id"].to_list() == ["d1", "d0"]


def test_a_bad_number_is_refused() -> None:
    bad = [-0.1, math.nan, math.inf]
    assert_refused(ImportanceWeight, "be >= 0", base_weight=bad, importance_weight=bad)
