"""How turns that somebody once said answer a question."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.recovery.turns import RawUserRanking, RawUserScore
from lcm.retrieval.terms import Terms
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.recovery.turns import NOW, turn, turns

QUESTION = "Where did Ada hide the copper kettle?"


def score(text: str, question: str = QUESTION, words: Terms | None = None, **fields: float) -> RawUserScore:
    (found,) = RawUserRanking().scores(question, [turn(text, **fields)], NOW, words or Terms())
    return found


def test_ties_go_to_the_words_then_the_cosine_then_the_id() -> None:
    words = (0.1, 0.1), (0.2, 0.1), (0.1, 0.1), (0.0, 0.2)
    scores = [RawUserScore(0.5, coverage, cosine, 0) for coverage, cosine in words]
    assert RawUserRanking().order(turns("b", "a", "c", "d"), scores) == [3, 1, 0, 2]


def test_words_of_every_script_count_where_terms_are_of_unicode() -> None:
    question, text = "東京の会議はいつ？", "来週の火曜日に東京で会議があります"
    assert score(text, question).coverage == 0
    assert score(text, question, Terms("unicode")).coverage == 2 / 7  # 東京 京の の会 会議 議は はい いつ
    assert score("le CAFÉ", "café", Terms("unicode")).coverage == 1


@given(
    st.text(),
    st.text(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-1e9, 1e9),
    st.sampled_from(["ascii", "unicode"]),
)
def test_every_number_is_within_0_and_1(question: str, text: str, cosine: float, age: float, words: str) -> None:
    found = score(text, question, Terms(words), score=cosine, age_s=age)  # type: ignore[arg-type]
    assert all(0 <= number <= 1 for number in found)


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(RawUserRanking, "be >= 0", recency_per_s=-1.0, coverage_weight=math.nan, most_phrases=-1)
    with pytest.raises(ValueError, match=r"phrase_terms\[0\] must be >= 1, got 0"):
        RawUserRanking(phrase_terms=[0, 2])
