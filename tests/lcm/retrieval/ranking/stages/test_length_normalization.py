"""Length normalization; the vectors of the original are in tests/golden."""

import math

import pytest

from lcm.retrieval.ranking.stages.scores import LengthNormalization
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import rows, scored


def test_only_what_is_longer_than_the_anchor_loses() -> None:
    found = scored(LengthNormalization(), score=[0.6] * 5, length_utf16=[0, None, 500, 1000, 2000])
    assert found == pytest.approx([0.6, 0.6, 0.6, 0.6 / 1.5, 0.6 / 2])
    steeper = LengthNormalization(anchor=100, slope=1.0)
    assert scored(steeper, score=[0.6], length_utf16=[800]) == [pytest.approx(0.6 / 4)]


@pytest.mark.parametrize("anchor", [0, -5])
def test_the_short_come_first_among_equals_and_an_anchor_that_is_not_above_zero_switches_it_off(anchor: int) -> None:
    frame, around = rows(length_utf16=[900, 800]), documents_batch([])
    assert LengthNormalization()(frame, around)["document_id"].to_list() == ["d1", "d0"]
    assert LengthNormalization(anchor=anchor)(frame, around).equals(frame)


def test_a_bad_number_is_refused() -> None:
    assert_refused(LengthNormalization, "be >= 0", slope=[-1, math.nan])
    assert_refused(LengthNormalization, "be a finite number", anchor=math.nan)
