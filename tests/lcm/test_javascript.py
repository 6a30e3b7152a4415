"""What JavaScript makes of JSON values; the clamps' vectors are in tests/golden."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.javascript import clamp01, clamp01_with_floor, clamp_int, is_finite_number, to_number, trim

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (None, 0.0),
        (True, 1.0),
        (False, 0.0),
        ("", 0.0),
        ("  \ufeff", 0.0),
        (" 12.5\n", 12.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0x10", math.nan),
        ("0x10", 16.0),
        ("0b11", 3.0),
        ("0o17", 15.0),
        ("-Infinity", -math.inf),
        ("inf", math.nan),
        ("nan", math.nan),
        ("1_000", math.nan),
        ("12px", math.nan),
        ("٣", math.nan),
        ([], 0.0),
        ([4], 4.0),
        ([["7"]], 7.0),
        ([None], 0.0),
        ([1, 2], math.nan),
        ([True], math.nan),
        ({}, math.nan),
        pytest.param(10**400, math.inf, id="beyond floats"),
        pytest.param(-(10**400), -math.inf, id="below floats"),
    ],
)
def test_a_value_is_converted_as_by_javascript(value: object, number: float) -> None:
    found = to_number(value)
    assert found == number or (math.isnan(number) and math.isnan(found))


@given(st.floats(allow_nan=False))
def test_a_number_and_its_text_convert_alike(number: float) -> None:
    shown = repr(number).replace("inf", "Infinity")
    assert to_number(shown) == to_number(number) == number


def test_true_and_texts_are_no_numbers_themselves() -> None:
    assert [is_finite_number(value) for value in (1, 2.5, True, "1", None, math.nan, math.inf, 10**400)] == [
        True,
        True,
        *[False] * 6,
    ]


def test_only_white_space_of_javascript_is_trimmed() -> None:
    assert trim("\ufeff\u3000 a\x1f \n") == "a\x1f"


@given(ANY_FLOAT, st.floats(min_value=0, max_value=1))
def test_a_clamped_value_lies_between_its_bounds(value: float, inner: float) -> None:
    assert 0 <= clamp01(value, inner) <= 1
    assert inner <= clamp01_with_floor(value, inner) <= 1
    assert clamp01(inner, 0.25) == inner


@given(ANY_FLOAT, st.integers(-5, 5), st.integers(0, 9))
def test_a_clamped_integer_lies_between_its_bounds(value: float, low: int, width: int) -> None:
    found = clamp_int(value, low, low + width)
    assert low <= found <= low + width
    if low <= value <= low + width:
        assert found == math.floor(value)


def test_what_is_not_finite_becomes_the_fallback_as_it_is() -> None:
    assert clamp01(math.nan, 1.5) == 1.5
    assert clamp01(math.inf, math.nan) == 0
