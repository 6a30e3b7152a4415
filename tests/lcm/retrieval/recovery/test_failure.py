"""When an answer has failed."""

import math
from dataclasses import replace
from typing import Any

import pytest

from lcm.protocols.retrieval import Signals
from lcm.retrieval.recovery.failure import FailureRule
from tests.lcm.retrieval.recovery.turns import DIM, summary, turn


def signals(*answer: Any, has_session: bool = True, **settings: Any) -> Signals:
    return FailureRule(**settings).signals(answer, has_session, DIM)


def test_a_weak_answer_from_the_widest_index_tier_has_failed() -> None:
    weak = turn(score=0.14, index_tier=DIM)
    assert signals(weak).has_failed
    assert not signals(replace(weak, index_tier=64)).has_failed
    assert not signals(replace(weak, score=0.15)).has_failed  # the floor itself is enough


def test_one_document_of_the_widest_tier_is_enough_and_the_first_one_is_judged() -> None:
    first, second = turn(score=0.1, index_tier=64), turn(name="u", score=0.9, index_tier=DIM)
    assert signals(first, second).has_failed
    assert not signals(second, first).is_weak


def test_nothing_but_summaries_of_low_confidence_has_failed() -> None:
    vague = [summary(confidence=c, name=f"s{c}") for c in (0.4, 0.5, 0.6, 0.48)]
    assert signals(*vague).is_vague  # (0.4 + 0.5 + 0.6 + 0.48) / 4 = 0.495
    assert signals(*vague).has_failed
    assert not signals(*vague[:3]).is_vague
    assert not signals(*vague[:3], replace(vague[3], confidence=0.5)).is_vague  # 0.5 is not below 0.5
    assert not signals(*vague[:3], turn()).is_vague
    assert signals(*vague, turn()).is_vague


def test_a_question_is_from_elsewhere_where_neither_the_session_nor_the_answer_has_a_turn_of_it() -> None:
    assert signals(has_session=False).is_elsewhere
    assert signals(turn(), has_session=False).is_elsewhere
    assert not signals(turn(scope_class="session"), has_session=False).is_elsewhere
    assert not signals(has_session=True).is_elsewhere
    assert not signals(has_session=False).has_failed


def test_an_empty_answer_is_neither_weak_nor_vague() -> None:
    assert signals() == Signals(False, False, False, False)
    assert signals(floor_score=1.0, min_top_k=1, min_mean_confidence=1.0) == Signals(False, False, False, False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"floor_score": math.nan}, "floor_score must be a finite number, got nan"),
        ({"min_top_k": 0}, "min_top_k must be >= 1, got 0"),
        ({"min_mean_confidence": 1.5}, r"min_mean_confidence must be in \[0, 1\], got 1.5"),
        ({"min_mean_confidence": math.nan}, r"min_mean_confidence must be in \[0, 1\], got nan"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FailureRule(**settings)
