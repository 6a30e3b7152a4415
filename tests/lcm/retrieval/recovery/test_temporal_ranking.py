"""Which turns answer a question about time."""

import math
from functools import partial
from typing import Any

import pytest

from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.recovery.turns import SemanticSlots, TemporalOrder, TemporalRanking
from lcm.retrieval.terms import Terms
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.recovery.turns import NOW, read, turn, turns

DAYS_BETWEEN = "How many days between the regatta and the harvest supper?"
COMPARISON = "Which did I do earlier, the copper kettle or the garden gate?"


def rank(
    question: str, found: list[Any], budget: float = math.inf, tokens: list[int] | None = None, **settings: Any
) -> TemporalOrder:
    costs = tokens or [10] * len(found)
    return TemporalRanking(**settings).rank(read(question), found, costs, budget, NOW, Terms())


def test_half_of_an_event_s_terms_are_enough_to_speak_of_it() -> None:
    for share, slots in ((0.5, (("harvest", "supper"),)), (0.6, ())):
        assert rank(DAYS_BETWEEN, turns("a supper"), slot_share=share).considered[0].slots == slots


def test_turns_that_speak_of_events_not_yet_spoken_of_are_chosen_first() -> None:
    found = turns("regatta", "regatta again", "harvest supper")
    found = [turn(t.text, t.document_id, score) for t, score in zip(found, (0.6, 0.6, 0.4), strict=True)]
    ranked = rank(DAYS_BETWEEN, found, most_chosen=2)
    assert ranked.chosen == (0, 2)
    assert ranked.order == (0, 2, 1)
    assert rank(DAYS_BETWEEN, found, most_chosen=2, new_slot_bonus=0.0).order == (0, 1, 2)


def test_what_gains_too_little_is_not_chosen() -> None:
    found = [turn("nothing", score=0.0, age_s=1e9)]  # 0.05, for the question is active
    assert rank(DAYS_BETWEEN, found).chosen == ()
    assert rank(DAYS_BETWEEN, found).order == (0,)
    assert rank(DAYS_BETWEEN, found, least_gain=0.05).chosen == (0,)


def test_a_pair_that_costs_too_much_is_not_put_first() -> None:
    found = turns("kettle bought", "gate painted")
    assert rank(COMPARISON, found, budget=20).pair == (0, 1)
    assert rank(COMPARISON, found, budget=19).pair is None
    plain = rank(COMPARISON, found, blends_comparison=False).considered[0]  # scored as any question
    assert plain.score == pytest.approx(0.4 * 0.5 + 0.25 * 1 + 0.15 * 1 / 2 + 0.05)
    assert rank(COMPARISON, []).order == ()
    assert rank("", turns("a", "b")).order == (0, 1)


def test_a_pair_takes_the_best_witnesses_or_the_best_scores() -> None:
    found = [
        turn("some time later and somewhere else kettle bought", "far", 1.0),
        turn("copper kettle", "near", 0.0),
        turn("gate painted", "gate"),
    ]
    assert rank(COMPARISON, found).pair == (1, 2)
    assert rank(COMPARISON, found, pairs_by_witness=False).pair == (0, 2)


def test_settings_out_of_range_are_refused() -> None:
    by_vectors = partial(SemanticSlots, Hashing())
    assert_refused(TemporalRanking, "be >= 0", anchor_weight=-1.0, least_gain=math.nan)
    assert_refused(TemporalRanking, "be in [0, 1]", slot_share=2.0)
    assert_refused(TemporalRanking, "be >= 1", most_chosen=0)
    assert_refused(by_vectors, "be >= 0", recency_weight=math.inf)
    assert_refused(by_vectors, "be in [-1, 1]", slot_cosine=1.5)
    assert_refused(by_vectors, "be >= 1", most_considered=0)


def semantic(question: str, found: list[Any], **settings: Any) -> TemporalOrder:
    ranking = SemanticSlots(Hashing(), **settings)
    return ranking.rank(read(question), found, [10] * len(found), 100, NOW, Terms())


def test_by_vectors_a_score_is_a_blend_by_how_much_the_question_is_about_time() -> None:
    found = [turn("the regatta was yesterday", score=0.6, age_s=20_000)]
    blended = 0.6 * 0.6 + 0.2 * math.exp(-1e-5 * 20_000) + 0.2 * 1 / 3
    assert semantic(DAYS_BETWEEN, found).considered[0].score == pytest.approx(blended)  # indicator 1
    assert semantic("what?", found).considered[0].score == pytest.approx(0.6)  # indicator 0
    xi = 0.7 / 1.5
    assert semantic("when did it?", found).considered[0].score == pytest.approx((1 - xi) * 0.6 + xi * blended)


def test_by_vectors_what_is_near_an_event_speaks_of_it() -> None:
    found = [turn(text, text, score) for text, score in (("regatta", 0.6), ("regattas", 0.6), ("harvest supper", 0.4))]
    ranked = semantic(DAYS_BETWEEN, found, most_chosen=2)
    assert [one.slots for one in ranked.considered] == [(("regatta",),), (("regatta",),), (("harvest", "supper"),)]
    assert ranked.order == (0, 2, 1)
    assert semantic(DAYS_BETWEEN, found, most_chosen=2, slot_cosine=1.0, new_slot_bonus=0.0).order == (0, 1, 2)


def test_by_vectors_what_scores_too_little_or_comes_too_late_is_left_out() -> None:
    found = [turn("a", "a", 0.9), turn("b", "b", 0.8), turn("c", "c", 0.0, age_s=1e9)]
    assert semantic(DAYS_BETWEEN, found).order == (0, 1)
    assert semantic(DAYS_BETWEEN, found, floor_score=0.0).order == (0, 1, 2)
    assert semantic(DAYS_BETWEEN, found, most_considered=1).order == (0,)
    assert semantic(DAYS_BETWEEN, []).order == ()
