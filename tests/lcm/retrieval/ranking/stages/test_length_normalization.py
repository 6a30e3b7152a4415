"""Length normalization; the vectors of the original are in tests/golden."""

import math

import pytest

from lcm.retrieval.ranking.stages.length_normalization import LengthNormalization
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import rows

BATCH = documents_batch([])


def normalized(stage: LengthNormalization, lengths: list[int | None], scores: list[float] | None = None) -> list[float]:
    frame = rows(length_utf16=lengths, score=scores or [0.6] * len(lengths))
    return stage(frame, BATCH).sort("document_id")["score"].to_list()


def test_only_what_is_longer_than_the_anchor_loses() -> None:
    found = normalized(LengthNormalization(), [0, None, 500, 1000, 2000])
    assert found == pytest.approx([0.6, 0.6, 0.6, 0.6 / 1.5, 0.6 / 2])


def test_the_short_come_first_among_equals() -> None:
    assert LengthNormalization()(rows(length_utf16=[900, 800]), BATCH)["document_id"].to_list() == ["d1", "d0"]


def test_the_slope_is_a_setting() -> None:
    assert normalized(LengthNormalization(anchor=100, slope=1.0), [800]) == [pytest.approx(0.6 / 4)]


def test_no_score_leaves_the_unit_interval() -> None:
    assert normalized(LengthNormalization(), [1, 1, 1], [1.5, math.nan, -1.0]) == [1.0, 0.0, 0.0]


def test_an_anchor_of_zero_switches_it_off() -> None:
    frame = rows(length_utf16=[9, 9999])
    assert LengthNormalization(anchor=0)(frame, BATCH).equals(frame)


@pytest.mark.parametrize("name", ["anchor", "slope"])
@pytest.mark.parametrize("value", [-1, math.nan])
def test_a_bad_number_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 0, got {value}"):
        LengthNormalization(**{name: value})
