"""How long a summary is asked to be; golden vectors hold shares, floors and targets."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.summarizer.chain import requested_tokens

TOKENS, TARGET = st.integers(0, 200_000), st.integers(1, 20_000)


@given(TOKENS, TOKENS, st.booleans(), TARGET)
def test_a_longer_leaf_is_never_asked_for_less_and_a_pressed_one_never_for_more(one, other, is_pressed, target):
    shorter, longer = (requested_tokens(tokens, 0, is_pressed, target, 2000) for tokens in sorted((one, other)))
    assert shorter <= longer <= requested_tokens(max(one, other), 0, False, target, 2000)
