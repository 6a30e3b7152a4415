"""When an answer has failed."""

import math
from dataclasses import replace
from typing import Any

from lcm.protocols.retrieval import Signals
from lcm.retrieval.recovery.fetch import FailureRule
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.recovery.turns import DIM, turn


def signals(*answer: Any, has_session: bool = True, **settings: Any) -> Signals:
    return FailureRule(**settings).signals(answer, has_session, DIM)


def test_a_weak_answer_from_the_widest_index_tier_has_failed() -> None:
    weak = turn(score=0.14, index_tier=DIM)
    assert signals(weak).has_failed
    assert not signals(replace(weak, index_tier=64)).has_failed
    assert not signals(replace(weak, score=0.15)).has_failed  # the floor itself is enough
    near = turn(name="u", score=0.9, index_tier=64)
    assert signals(near, weak).is_from_widest  # one document is enough
    assert not signals(near, weak).is_weak  # the first one is judged
    assert signals(floor_score=1.0, min_top_k=1, min_mean_confidence=1.0) == Signals(False, False, False, False)


def test_a_question_is_from_elsewhere_where_neither_the_session_nor_the_answer_has_a_turn_of_it() -> None:
    assert signals(has_session=False).is_elsewhere
    assert signals(turn(), has_session=False).is_elsewhere
    assert not signals(turn(scope_class="session"), has_session=False).is_elsewhere
    assert not signals(has_session=True).is_elsewhere
    assert not signals(has_session=False).has_failed


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(FailureRule, "be a finite number", floor_score=math.nan)
    assert_refused(FailureRule, "be >= 1", min_top_k=0)
    assert_refused(FailureRule, "be in [0, 1]", min_mean_confidence=[1.5, math.nan])
