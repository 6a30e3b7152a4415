"""What the overlay puts first; the laws of recovery are in tests/conformance."""

from typing import Any

from lcm.records.query import Recalled
from tests.lcm.retrieval.recovery.turns import DIM, NOW, overlay, summary, turn, turns

COMPARISON = "Which did I do earlier, the copper kettle or the garden gate?"


def order(question: str, found: list[Recalled], reserve: int = 100, **parts: Any) -> list[str]:
    places = overlay(**parts).order(question, found, [10] * len(found), reserve, NOW)
    return [found[place].document_id for place in places]


def test_turns_of_the_own_session_come_by_cosine_and_others_by_the_words_of_the_question() -> None:
    for fields, expected in (({"scope_class": "session"}, ["b", "a"]), ({}, ["a", "b"])):
        found = [turn("copper kettle", "a", 0.2, **fields), turn("nothing", "b", 0.9, **fields)]
        assert order("copper kettle", found) == expected


def test_both_are_merged_by_score() -> None:
    for cosine, expected in ((0.9, ["own", "far"]), (0.1, ["far", "own"])):  # beside 0.2 * 0.9 + 0.1
        found = [turn("nothing", "own", cosine, scope_class="session"), turn("nothing", "far", 0.9)]
        assert order("copper kettle", found) == expected


def test_a_pair_of_witnesses_comes_first_where_it_fits() -> None:
    found = turns("a day of rain", "copper kettle", "garden gate")
    found[0] = turn("copper garden", "t0", 1.0)  # of both events a half: a witness of neither, and the best score
    assert order(COMPARISON, found) == ["t1", "t2", "t0"]
    assert order(COMPARISON, found, reserve=19)[0] == "t0"
    assert order(COMPARISON, found, puts_pair_first=False)[0] == "t0"


def test_the_widest_tier_is_as_wide_as_the_embedder() -> None:
    assert overlay().signals([summary(0.1, index_tier=DIM)], True).has_failed
    assert not overlay().signals([summary(0.1, index_tier=DIM - 1)], True).has_failed
