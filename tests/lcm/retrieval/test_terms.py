"""A text as terms."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.terms import Terms, TermWords
from tests.lcm.refusals import assert_refused

TEXTS = st.text("aZ09_ éßЖ東京都かが\u0301İK -", max_size=12)


def test_words_of_any_script_lose_their_accents_and_pairs_come_last() -> None:
    assert Terms("ascii").all_of("A snake_case, über Пирог 東京") == ["a", "snake_case", "ber"]  # as the original
    assert Terms("unicode").all_of("A snake_case 東京都 über") == ["a", "snake", "case", "uber", "東京", "京都"]


def test_what_is_too_short_counts_for_nothing_but_a_pair_does() -> None:
    assert Terms("unicode").of("is it red 東京") == ["red", "東京"]
    assert Terms("ascii", min_length=1).of("is it red") == ["is", "it", "red"]


def test_nothing_else_is_taken_for_a_setting() -> None:
    assert_refused(Terms, "be one of: ascii, unicode", words="greek")
    assert_refused(Terms, "be >= 1", min_length=0)


@pytest.mark.parametrize("words", ["ascii", "unicode"])
@given(st.lists(TEXTS | st.none(), min_size=1, max_size=4))
def test_a_column_is_cut_as_its_texts_are(words: TermWords, texts: list[str | None]) -> None:
    terms = Terms(words)
    cut = terms.all_of_each(pl.Series(texts, dtype=pl.String))
    assert cut.to_list() == [None if text is None else terms.all_of(text) for text in texts]
