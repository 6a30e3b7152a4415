"""A text as terms."""

from lcm.retrieval.terms import Terms
from tests.lcm.refusals import assert_refused


def test_words_of_any_script_lose_their_accents_and_pairs_come_last() -> None:
    assert Terms("ascii").all_of("A snake_case, über Пирог 東京") == ["a", "snake_case", "ber"]  # as the original
    assert Terms("unicode").all_of("A snake_case 東京都 über") == ["a", "snake", "case", "uber", "東京", "京都"]


def test_what_is_too_short_counts_for_nothing_but_a_pair_does() -> None:
    assert Terms("unicode").of("is it red 東京") == ["red", "東京"]
    assert Terms("ascii", min_length=1).of("is it red") == ["is", "it", "red"]


def test_nothing_else_is_taken_for_a_setting() -> None:
    assert_refused(Terms, "be one of: ascii, unicode", words="greek")
    assert_refused(Terms, "be >= 1", min_length=0)
