"""The decay boost; the vectors of the original are in tests/golden."""

import math
from dataclasses import dataclass

import pytest

from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Columns, Numbers
from lcm.retrieval.decay import NoDecay, Weibull
from lcm.retrieval.ranking.stages.scores import DecayBoost
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import rows, scored


@dataclass(frozen=True, slots=True)
class Written:
    """Takes the multiplier from a column."""

    contract = Contract(reads=("confidence",))

    def multiplier(self, columns: Columns) -> Numbers:
        return columns.numbers("confidence")

    def strength(self, columns: Columns) -> Numbers:
        return columns.numbers("confidence")


def test_the_multiplier_scales_the_score_and_three_tenths_stand_in_for_one_that_is_no_number() -> None:
    found = scored(DecayBoost(Written()), score=[0.8, 0.5, 0.8, 0.8], confidence=[0.5, 0.9, 0.1, math.nan])
    assert found == pytest.approx([0.4, 0.45, 0.08, 0.8 * 0.3])


def test_the_livelier_comes_first_among_equals() -> None:
    after = DecayBoost(Weibull())(rows(decay_tier=["peripheral", "core"]), documents_batch([]))
    assert after["document_id"].to_list() == ["d1", "d0"]
    assert after["score"].to_list() == pytest.approx([0.5 * (0.3 + 0.7 * 0.9), 0.5 * (0.3 + 0.7 * (0.4 + 0.3 * 0.49))])


def test_no_score_leaves_the_unit_interval() -> None:
    assert scored(DecayBoost(NoDecay()), score=[1.5, -1.0, math.nan, None, 0.9]) == [1.0, 0.0, 0.0, 0.0, 0.9]
