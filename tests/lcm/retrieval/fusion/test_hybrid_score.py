"""The hybrid score; the vectors of the original are in tests/golden."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.decay.exponential import Exponential
from lcm.retrieval.decay.none import NoDecay
from lcm.retrieval.fusion.hybrid_score import HybridScore
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import days_ago, rows
from tests.lcm.retrieval.refusals import assert_refused

CLASSES = ["session", "durable", "global"]


def scored(stage: HybridScore, **columns: list[Any]) -> dict[str, float]:
    found = stage(rows(**columns), documents_batch([]))
    return dict(found.select("document_id", "score").iter_rows())


def test_cosine_recency_and_scope_add_up() -> None:
    stage = HybridScore(Exponential(0, math.log(2) / 86_400, 0))
    found = scored(stage, cosine=[0.5] * 3, created_at=[days_ago(1)] * 3, scope_class=CLASSES)
    none = scored(stage, cosine=[None, math.nan, -0.9], scope_class=["session"] * 3)
    assert found == {
        "d0": pytest.approx(0.7 * 0.5 + 0.2 * 1 + 0.1 * 1.0),
        "d2": pytest.approx(0.7 * 0.5 + 0.2 * 1 + 0.1 * 0.3),
        "d1": pytest.approx(0.7 * 0.5 + 0.2 / 2 + 0.1 * 0.6),
    }
    assert list(none.values()) == pytest.approx([0.2 + 0.1] * 3)


def test_a_summary_loses_by_what_it_is_not_sure_of() -> None:
    stage = replace(HybridScore(NoDecay()), cosine_weight=1.0, recency_weight=0.0, scope_weight=0.0)
    columns = {"cosine": [0.8, 0.8], "kind": ["summary", "message"], "decay_rate": [0.5, 0.5]}
    assert scored(stage, **columns) == {"d1": 0.8, "d0": pytest.approx(0.8 * (1 - 0.5 * 0.5))}
    assert scored(replace(stage, summary_delta=1.0), **columns)["d0"] == pytest.approx(0.8 * 0.5)
    assert scored(replace(stage, summary_delta=0.0), **columns) == {"d0": 0.8, "d1": 0.8}


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
