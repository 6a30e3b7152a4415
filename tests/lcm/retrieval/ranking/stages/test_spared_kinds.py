"""Documents of some kinds keep their score, whichever stage takes off that of others."""

import pytest

from lcm.protocols.retrieval import Stage
from lcm.retrieval.decay import Weibull
from lcm.retrieval.ranking.stages.scores import DecayBoost, LengthNormalization, TimeDecay
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import days_ago, rows

STAGES = {
    "length": LengthNormalization(anchor=100, spared_kinds=["authored"]),
    "time": TimeDecay(spared_kinds=["authored"]),
    "decay": DecayBoost(Weibull(), spared_kinds=["authored"]),
}


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_what_is_spared_keeps_its_score_and_rises_above_what_is_not(stage: Stage) -> None:
    frame = rows(created_at=[days_ago(90)] * 2, kind=["message", "authored"], length_utf16=[800, 800])
    after = stage(frame, documents_batch([]))
    assert after["document_id"].to_list() == ["d1", "d0"]
    assert after["score"][0] == frame["score"][1] > after["score"][1]


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_what_is_spared_must_be_known_by_its_kind(stage: Stage) -> None:
    assert "kind" in getattr(stage, "reads", ("kind",))
