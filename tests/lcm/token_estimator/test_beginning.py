"""Cutting a text to tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.token_estimator import ScriptAware, first_tokens

TOKENS = ScriptAware(rules="0.15")


@given(st.text(st.characters(codec="utf-16"), max_size=40), st.integers(-1, 30))
def test_a_beginning_is_the_longest_that_has_no_more_tokens(text: str, most: int) -> None:
    cut = first_tokens(text, most, TOKENS)
    assert text.startswith(cut)
    assert TOKENS.count([cut])[0] <= max(0, most)
    assert cut == text or TOKENS.count([text[: len(cut) + 1]])[0] > most


@pytest.mark.parametrize(
    ("text", "corrected", "original"),
    [
        ("abcd", 1, 1),
        ("你好", 3, 3),
        ("😀", 2, 2),
        ("𠀀𠀀", 4, 3),
        ("⺀⺀", 3, 1),
        ("ㄅㄅ", 3, 1),
        ("\uf900\uf900", 3, 1),
        ("ー、", 3, 3),
    ],
    ids=["ascii", "han", "emoji", "rare han", "radicals", "bopomofo", "compatibility", "kana"],
)
def test_rules_differ_in_what_is_chinese(text: str, corrected: int, original: int) -> None:
    assert ScriptAware().count([text]) == [corrected]
    assert TOKENS.count([text]) == [original]
