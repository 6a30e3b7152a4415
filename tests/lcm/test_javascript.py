"""What JavaScript makes of JSON values; the clamps' vectors are in tests/golden."""

import math

from hypothesis import given
from hypothesis import strategies as st

from lcm.javascript import clamp01, clamp01_with_floor, clamp_int, is_finite_number, to_number, trim

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)


NUMBERS: list[tuple[object, float]] = [
    *((value, 0.0) for value in (None, False, "", "  \ufeff", [], [None])),
    (True, 1.0),
    *((" 12.5\n", 12.5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0)),
    *(("0x10", 16.0), ("0b11", 3.0), ("0o17", 15.0), ("-Infinity", -math.inf)),
    *(([4], 4.0), ([["7"]], 7.0), (10**400, math.inf), (-(10**400), -math.inf)),
    *((value, math.nan) for value in ("-0x10", "inf", "nan", "1_000", "12px", "٣", [1, 2], [True], {})),
]


def test_a_value_is_converted_as_by_javascript() -> None:
    wrong = [value for value, number in NUMBERS if repr(to_number(value)) != repr(number)]
    assert wrong == []


@given(st.floats(allow_nan=False))
def test_a_number_and_its_text_convert_alike(number: float) -> None:
    shown = repr(number).replace("inf", "Infinity")
    assert to_number(shown) == to_number(number) == number


def test_true_and_texts_are_no_numbers_themselves() -> None:
    values = (1, 2.5, True, "1", None, math.nan, math.inf, 10**400)
    assert [is_finite_number(value) for value in values] == [True, True, *[False] * 6]


def test_only_white_space_of_javascript_is_trimmed() -> None:
    assert trim("\ufeff\u3000 a\x1f \n") == "a\x1f"


@given(ANY_FLOAT, st.floats(min_value=0, max_value=1), st.integers(-5, 5), st.integers(0, 9))
def test_a_clamped_value_lies_between_its_bounds(value: float, inner: float, low: int, width: int) -> None:
    assert 0 <= clamp01(value, inner) <= 1
    assert inner <= clamp01_with_floor(value, inner) <= 1
    assert clamp01(inner, 0.25) == inner
    assert low <= clamp_int(value, low, low + width) <= low + width
    if low <= value <= low + width:
        assert clamp_int(value, low, low + width) == math.floor(value)


def test_what_is_not_finite_becomes_the_fallback_as_it_is() -> None:
    assert clamp01(math.nan, 1.5) == 1.5
    assert clamp01(math.inf, math.nan) == 0
