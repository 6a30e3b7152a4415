"""Which questions are about time, which events they name, and what in a text says when."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.recovery.question import Slots, TemporalQueries, anchor_density
from lcm.retrieval.terms import Terms
from pipelines.config import building, composition
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.recovery.turns import read


def slots(question: str, **settings: Any) -> list[str]:
    return list(map(" ".join, Slots(**settings).of(question, Terms())))


def test_each_pattern_counts_once_by_its_weight() -> None:
    found = read("How long, how long before the storm?")
    assert found.patterns == ("how long", "before or after")
    assert found.indicator == 1  # (0.9 + 0.8) / 1.5 and no more
    for question, weight in {
        "How many days?": 1.0,
        "How long?": 0.9,
        "Before or after lunch?": 0.8,
        "Since the flood?": 0.7,
        "Which came first?": 0.8,
        "When did it rain?": 0.7,
        "Is it wet?": 0.0,
    }.items():
        assert read(question).indicator == weight / 1.5, question


def test_a_question_of_two_events_is_selected_and_others_are_not() -> None:
    found = read("How many days between the regatta and the harvest supper?")
    assert found.slots == (("regatta",), ("harvest", "supper"))
    assert found.is_selected
    assert not found.is_comparison
    for question in (
        "How many days before the wedding did I buy the suit?",  # one slot: "wedding buy suit"
        "How long is the Nile?",
        "When did the regatta start, and the harvest supper?",  # when did alone is too little
        "What about the regatta and the harvest supper?",
    ):
        assert not read(question).is_selected, question


def test_words_that_name_no_event_can_be_left_out() -> None:
    queries = building.build(composition.composed(["recovery=corrected"]), "recovery").queries
    found = queries.read("Which came first, the regatta or the harvest supper?", Terms())
    assert found.slots == (("regatta",), ("harvest", "supper"))


def test_a_long_clause_gives_its_first_and_last_terms_and_there_are_at_most_four_different_slots() -> None:
    assert slots("alpha beta gamma", short_terms=2, edge_terms=1) == ["alpha", "gamma"]
    assert slots("ash, elm, oak, ash; yew. fir") == ["ash", "elm", "oak", "yew"]
    assert slots("of an a, it") == []


@given(st.text())
def test_every_question_can_be_read(question: str) -> None:
    found = read(question)
    assert 0 <= found.indicator <= 1
    assert found.is_active == (found.indicator >= 0.3)
    assert len(found.slots) <= 4
    assert all(found.slots)
    assert 0 <= anchor_density(question) <= 1


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(TemporalQueries, "be > 0", full_weight=0)
    assert_refused(TemporalQueries, "be in [0, 1]", threshold=math.nan)
    assert_refused(Slots, "be >= 1", most_slots=0)
    for weights, words in (
        ({"how long": 1.0}, "weights must name how many days, before or after, .*, got how long"),
        (dict(TemporalQueries().weights) | {"when did": -1.0}, r"weights\.when did must be >= 0, got -1\.0"),
    ):
        with pytest.raises(ValueError, match=words):
            TemporalQueries(weights=weights)
