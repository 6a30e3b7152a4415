"""The hybrid score; the vectors of the original are in tests/golden."""

import math
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.decay import Exponential, NoDecay
from lcm.retrieval.fusion import HybridScore
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import days_ago, rows

CLASSES = ["session", "durable", "global"]


def scored(stage: HybridScore, **columns: list[Any]) -> dict[str, float]:
    found = stage(rows(**columns), documents_batch([]))
    return dict(found.select("document_id", "score").iter_rows())


def test_a_cosine_that_is_none_or_below_0_counts_nothing() -> None:
    found = scored(HybridScore(NoDecay()), cosine=[None, math.nan, -0.9], scope_class=["session"] * 3)
    assert list(found.values()) == pytest.approx([0.2 + 0.1] * 3)


@given(
    st.builds(
        HybridScore,
        recency=st.just(Exponential()),
        cosine_weight=st.floats(0.01, 1),
        recency_weight=st.floats(0, 1),
        scope_weight=st.floats(0, 1),
        summary_delta=st.floats(0, 1),
    ),
    st.one_of(st.none(), st.floats()),
    st.one_of(st.none(), st.floats()),
    st.sampled_from(CLASSES),
    st.floats(-9, 999).map(days_ago),
)
def test_a_score_is_a_share(
    stage: HybridScore, cosine: float | None, decay_rate: float | None, whose: str, created_at: Any
) -> None:
    columns = {"cosine": [cosine], "decay_rate": [decay_rate], "scope_class": [whose], "created_at": [created_at]}
    assert 0 <= scored(stage, kind=["summary"], **columns)["d0"] <= 1


def test_impossible_settings_are_refused() -> None:
    settings = {"cosine_weight": math.nan, "global_scope": 2.0, "summary_delta": 2.0}
    assert_refused(partial(HybridScore, NoDecay()), "be in [0, 1]", **settings)
    with pytest.raises(ValueError, match="cosine_weight, recency_weight and scope_weight must not all be 0: raise one"):
        HybridScore(NoDecay(), cosine_weight=0.0, recency_weight=0.0, scope_weight=0.0)
