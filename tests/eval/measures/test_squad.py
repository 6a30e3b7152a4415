"""SQuAD's scores: the arithmetic in sight, and the laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.measures.answers import contained, exact_match, f1, words

WORDS = st.sampled_from(["a", "the", "cat", "Cat.", "sat", "on", "7", "May", "-"])
TEXTS = st.text(max_size=30) | st.lists(WORDS, max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("answer", "reference", "precision", "recall"),
    [
        ("The cat sat.", "cat sat", 2 / 2, 2 / 2),
        ("on 7 May, 2023", "7 May 2023", 3 / 4, 3 / 3),
        ("cat cat dog", "cat bird", 1 / 3, 1 / 2),  # a word counts as often as both have it
        ("cat cat", "cat cat bird", 2 / 2, 2 / 3),
        ("an apple a day", "the apple", 1 / 2, 1 / 1),  # articles do not count
        ("U.S.", "us", 1 / 1, 1 / 1),  # a mark goes without a blank in its place
        ("dog", "cat", 0.0, 0.0),
        ("", "cat", 0.0, 0.0),
        ("the", "cat", 0.0, 0.0),
        ("the", "a", 1.0, 1.0),  # nothing is left of either
    ],
)
def test_f1_is_the_harmonic_mean_of_what_is_shared(
    answer: str, reference: str, precision: float, recall: float
) -> None:
    expected = 2 * precision * recall / (precision + recall) if precision else 0.0
    assert f1(answer, [reference]) == pytest.approx(expected)


def test_the_best_of_several_references_counts_and_none_is_refused() -> None:
    assert f1("red cat", ["dog", "red", "red fox in snow"]) == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert exact_match("red", ["dog", "Red!"]) == 1.0
    assert contained("a red cat sat", ["dog", "the cat"]) == 1.0
    for nothing in ([], "cat"):
        with pytest.raises(ValueError, match="at least one reference"):
            f1("cat", nothing)


@given(TEXTS, TEXTS)
def test_scores_are_symmetric_bounded_and_1_for_the_same_words(one: str, other: str) -> None:
    assert f1(one, [other]) == f1(other, [one])
    assert 0.0 <= f1(one, [other]) <= 1.0
    assert f1(one, [one]) == exact_match(one, [one]) == contained(one, [one]) == 1.0
    if exact_match(one, [other]):
        assert f1(one, [other]) == contained(one, [other]) == 1.0


def test_a_reference_is_contained_word_by_word_in_a_row_or_character_by_character() -> None:
    assert contained("They met on 7 May, in Perth", ["7 May"]) == 1.0
    assert contained("They met in May, on the 7th", ["7 May"]) == 0.0
    assert contained("The party was loud", ["art"]) == 0.0
    assert contained("", ["cat"]) == 0.0
    assert words("来週の火曜日、東京で。") == ["来", "週", "の", "火", "曜", "日", "東", "京", "で"]
    assert f1("火曜日", ["来週の火曜日"]) == pytest.approx(2 * 1 * (3 / 6) / (1 + 3 / 6))
    assert contained("会議は火曜日です", ["火曜日"]) == 1.0
