"""The importance weight; the vectors of the original are in tests/golden."""

import math

import pytest

from lcm.retrieval.ranking.stages.importance_weight import ImportanceWeight
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import rows

BATCH = documents_batch([])


def weighted(stage: ImportanceWeight, **columns: list[object]) -> list[float]:
    return stage(rows(**columns), BATCH).sort("document_id")["score"].to_list()


def test_importance_scales_the_score() -> None:
    found = weighted(ImportanceWeight(), score=[0.8] * 3, importance=[0.0, 0.5, 1.0])
    assert found == pytest.approx([0.8 * 0.7, 0.8 * 0.85, 0.8])


def test_a_missing_importance_is_the_default_and_one_that_is_no_number_is_none() -> None:
    found = weighted(ImportanceWeight(), score=[0.8] * 3, importance=[None, 0.7, math.nan])
    assert found == pytest.approx([0.8 * 0.91, 0.8 * 0.91, 0.8 * 0.7])


def test_no_score_leaves_the_unit_interval() -> None:
    found = weighted(ImportanceWeight(), score=[0.9, 0.9, math.nan], importance=[9.0, -9.0, 0.5])
    assert found == [1.0, 0.0, 0.0]


def test_the_important_come_first_among_equals() -> None:
    assert ImportanceWeight()(rows(importance=[0.1, 0.2]), BATCH)["document_id"].to_list() == ["d1", "d0"]


def test_the_shares_are_settings() -> None:
    assert weighted(ImportanceWeight(0.2, 0.8), score=[0.5], importance=[0.5]) == [pytest.approx(0.5 * 0.6)]


@pytest.mark.parametrize("name", ["base_weight", "importance_weight"])
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_a_bad_number_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 0, got {value}"):
        ImportanceWeight(**{name: value})
