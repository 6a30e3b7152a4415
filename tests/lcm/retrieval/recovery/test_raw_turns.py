"""The laws of recovery, over every choice; and what the overlay puts first."""

from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.protocols.retrieval import Recovery, Signals
from lcm.records.document import SCOPE_CLASSES
from lcm.records.query import Recalled
from pipelines.config import building
from tests.lcm.retrieval.recovery.turns import DIM, NOW, overlay, summary, turn, turns
from tests.support.composing import composed

CHOICES = sorted(path.stem for path in (Path(__file__).parents[4] / "conf" / "recovery").glob("*.yaml"))
COMPARISON = "Which did I do earlier, the copper kettle or the garden gate?"
SENTENCES = (
    "",
    "the kettle on 2031-05-06",
    "I'm planning a garden gate",
    "copper kettle and garden gate",
    "今日は雨です",
    "!!!",
)
QUESTIONS = (
    "", "?", "first", COMPARISON, "How many days between the kettle and the gate?", "昨日は？", "when did I, or you",
)  # fmt: skip


@cache
def choice(name: str) -> Recovery:
    recovery: Recovery = building.build(composed([f"recovery={name}", "embedder=hashing"]), "recovery")
    return recovery


@st.composite
def answers(draw: st.DrawFn) -> list[Recalled]:
    ages = st.integers(-(10**6), 10**9)
    return [
        Recalled(
            f"d{i}",
            draw(st.sampled_from(SENTENCES)),
            draw(st.sampled_from(["message", "summary"])),
            (),
            NOW - timedelta(seconds=draw(ages)),
            draw(st.floats(-2, 2)),
            scope_class=draw(st.sampled_from(SCOPE_CLASSES)),
            confidence=draw(st.floats(0, 1)),
            index_tier=draw(st.sampled_from([None, 64, DIM])),
        )
        for i in range(draw(st.integers(0, 8)))
    ]


@pytest.mark.parametrize("name", CHOICES)
@given(answers(), st.sampled_from(QUESTIONS), st.integers(-5, 300), st.data())
def test_an_order_is_a_permutation_of_some_of_what_was_given(
    name: str, found: list[Recalled], question: str, reserve: int, data: st.DataObject
) -> None:
    tokens = data.draw(st.lists(st.integers(0, 200), min_size=len(found), max_size=len(found)))
    order = choice(name).order(question, found, tokens, reserve, NOW)
    assert len(set(order)) == len(order)
    assert set(order) <= set(range(len(found)))
    assert order == choice(name).order(question, list(found), list(tokens), reserve, NOW)


@pytest.mark.parametrize("name", CHOICES)
@given(answers(), st.booleans(), st.sampled_from(QUESTIONS), st.integers(-5, 5000))
def test_what_has_not_failed_gets_no_reserve_and_no_reserve_is_above_the_budget(
    name: str, answer: list[Recalled], has_session: bool, question: str, budget: int
) -> None:
    signals = choice(name).signals(answer, has_session)
    reserve = choice(name).reserve_tokens(question, signals, budget)
    assert 0 <= reserve <= max(0, budget)
    if not (signals.has_failed or signals.is_elsewhere) or choice(name).is_off:
        assert reserve == 0


@pytest.mark.parametrize("name", CHOICES)
@given(answers())
def test_an_answer_with_a_turn_of_the_session_is_not_from_elsewhere(name: str, answer: list[Recalled]) -> None:
    if any(one.scope_class == "session" for one in answer):
        assert not choice(name).signals(answer, False).is_elsewhere
    assert choice(name).signals([], True) == Signals(False, False, False, False)


def order(question: str, found: list[Recalled], reserve: int = 100, **parts: Any) -> list[str]:
    places = overlay(**parts).order(question, found, [10] * len(found), reserve, NOW)
    return [found[place].document_id for place in places]


def test_turns_of_the_own_session_come_by_cosine() -> None:
    found = [
        turn("copper kettle", "a", 0.2, scope_class="session"),
        turn("nothing", "b", 0.9, scope_class="session"),
    ]
    assert order("copper kettle", found) == ["b", "a"]


def test_turns_from_elsewhere_come_by_the_words_of_the_question() -> None:
    found = [turn("nothing", "b", 0.9), turn("copper kettle", "a", 0.2)]
    assert order("copper kettle", found) == ["a", "b"]


def test_both_are_merged_by_score() -> None:
    found = [turn("nothing", "own", 0.9, scope_class="session"), turn("nothing", "far", 0.9)]
    assert order("copper kettle", found) == ["own", "far"]  # 0.9 before 0.2 * 0.9 + 0.1
    found = [turn("nothing", "own", 0.1, scope_class="session"), turn("nothing", "far", 0.9)]
    assert order("copper kettle", found) == ["far", "own"]


def test_a_pair_of_witnesses_comes_first_where_it_fits() -> None:
    found = turns("a day of rain", "copper kettle", "garden gate")
    found[0] = turn("copper garden", "t0", 1.0)  # of both events a half: a witness of neither, and the best score
    assert order(COMPARISON, found) == ["t1", "t2", "t0"]
    assert order(COMPARISON, found, reserve=19)[0] == "t0"
    assert order(COMPARISON, found, puts_pair_first=False)[0] == "t0"


def test_the_widest_tier_is_as_wide_as_the_embedder() -> None:
    assert overlay().signals([summary(0.1, index_tier=DIM)], True).has_failed
    assert not overlay().signals([summary(0.1, index_tier=DIM - 1)], True).has_failed
