import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.summarizer.target_tokens import requested_tokens

TOKENS = st.integers(0, 200_000)
TARGET = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("text_tokens", "is_aggressive", "leaf_target", "expected"),
    [
        (10_000, False, 2400, 2400),
        (2000, False, 2400, math.floor(0.35 * 2000)),
        (500, False, 2400, 192),  # 0.35 * 500 = 175
        (10_000, False, 100, 192),
        (10_000, True, 2400, math.floor(0.55 * 2400)),
        (2000, True, 2400, math.floor(0.2 * 2000)),
        (100, True, 2400, 96),  # 0.2 * 100 = 20
        (10_000, True, 100, math.floor(0.55 * 192)),
        (0, False, 2400, 192),
        (0, True, 2400, 96),
    ],
)
def test_a_leaf_is_asked_for_a_share_of_its_text_up_to_its_target(
    text_tokens: int, is_aggressive: bool, leaf_target: int, expected: int
) -> None:
    assert requested_tokens(text_tokens, 0, is_aggressive, leaf_target, 2000) == expected


@given(TOKENS, st.integers(1, 9), st.booleans(), TARGET, TARGET)
def test_a_condensed_summary_is_asked_for_its_target_alone(
    text_tokens: int, depth: int, is_aggressive: bool, leaf_target: int, condensed_target: int
) -> None:
    found = requested_tokens(text_tokens, depth, is_aggressive, leaf_target, condensed_target)
    assert found == max(512, condensed_target)


@given(TOKENS, TARGET, TARGET)
def test_pressing_a_leaf_never_asks_for_more(text_tokens: int, leaf_target: int, condensed_target: int) -> None:
    normal, pressed = (requested_tokens(text_tokens, 0, is_, leaf_target, condensed_target) for is_ in (False, True))
    assert 96 <= pressed <= normal <= max(192, leaf_target)


@given(TOKENS, TOKENS, st.booleans(), TARGET)
def test_a_longer_text_is_never_asked_for_less(one: int, other: int, is_aggressive: bool, leaf_target: int) -> None:
    shorter, longer = (requested_tokens(tokens, 0, is_aggressive, leaf_target, 2000) for tokens in sorted((one, other)))
    assert shorter <= longer
