"""What a text costs under each estimator; the laws of all are in tests/conformance."""

import math
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.encoding import well_formed
from lcm.javascript import first_units, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.token_estimator import CodePoints, Recorded, ScriptAware, ScriptChars, Utf8Bytes, Utf16Units

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
CJK = "日本語日本語日"


@given(ANY_TEXT)
def test_utf16_length_counts_characters_beyond_the_basic_plane_twice(text: str) -> None:
    assert utf16_length(text) == len(text) + sum(ord(character) > 0xFFFF for character in text)


@given(ANY_TEXT, st.integers(0, 12))
def test_the_first_units_are_a_beginning(text: str, units: int) -> None:
    """A cut through a character leaves half of it, a mark, or nothing."""
    raw = text.encode("utf-16-le", "surrogatepass")
    kept = first_units(text, units, "kept")
    assert kept.encode("utf-16-le", "surrogatepass") == raw[: 2 * units]
    assert first_units(text, units, "replaced") == well_formed(kept)
    around = raw[2 * units - 2 : 2 * units + 2]  # the units before and behind the cut
    is_cut = len(around) == 4 and len(around.decode("utf-16-le", "surrogatepass")) == 1
    assert first_units(text, units, "dropped") == (kept[:-1] if is_cut else kept)


def test_two_halves_that_stand_side_by_side_are_a_character() -> None:
    cuts = [first_units("a\ud83d\ude00b", 2, half) for half in ("kept", "replaced", "dropped")]  # type: ignore[arg-type]
    assert cuts == ["a\ud83d", "a\ufffd", "a"]


@pytest.mark.parametrize(
    ("estimator", "texts"),
    [
        (Utf16Units(), {"": 0, "a": 1, "abcd": 1, "abcde": 2, "👍👍👍": math.ceil(6 / 4)}),
        (
            ScriptAware(),
            {"": 0, "abcd": 1, "日本語": math.ceil(3 * 1.5), "カタ、ひら한": math.ceil(6 * 1.5), "👍👍": 2 * 2, "𠀀": 2}
            | {"naïve 日": math.ceil(6 * 0.25 + 1.5), "\ud83d": 1},
        ),
        (
            ScriptChars(),
            {
                **{text: math.ceil(utf16_length(text) / 4) for text in ("a plain text", "ｶﾀｶﾅ", "Καλημέρα", "😀😀😀")},
                **{text: math.ceil(len(text) / 2.5) for text in ("Встреча завтра", "שלום עולם", "مرحبا")},
                **{text: math.ceil(len(text) / 1.6) for text in ("明日 meeting", "Встреча 明日", "안녕하세요")},
            },
        ),
        (CodePoints(), {"": 0, "a": 1, "abcd": 1, "abcde": 1, CJK: 1, "😀" * 8: 2}),
        (CodePoints(rounding="up"), {"": 0, "a": 1, "abcd": 1, "abcde": 2, CJK: 2, "😀" * 8: 2}),
        (CodePoints(empty_tokens=1), {"": 1}),
        (Utf8Bytes(), {"": 0, "a": 1, "abcd": 1, "a" * 8: 2, "é" * 4: 2, CJK: 5, "😀": 1, "\ud800" * 4: 3}),
        (Utf8Bytes(empty_tokens=1), {"": 1}),
        (Recorded(), {"": 0, "abcd": 1, "日本語": math.ceil(3 * 1.5)}),
        (Recorded(CodePoints()), {"": 0, "日本語日": 1}),
    ],
    ids=repr,
)
def test_a_text_costs_so_many_tokens(estimator: TokenEstimator, texts: dict[str, int]) -> None:
    """Of ScriptChars one character says how many units a token has."""
    assert dict(zip(texts, estimator.count(list(texts)), strict=True)) == texts
    assert pickle.loads(pickle.dumps(estimator)) == estimator


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**5), min_size=1))
def test_a_recorded_number_is_shared_whole(tokens: int, estimated: list[int]) -> None:
    shares = Recorded().shares(tokens, estimated)
    assert sum(shares) == tokens
    assert len(shares) == len(estimated)
    weights = estimated if any(estimated) else [1] * len(estimated)
    assert all(
        abs(share * sum(weights) - tokens * one) < sum(weights) for share, one in zip(shares, weights, strict=True)
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Utf16Units(0), "units_per_token must be > 0, got 0"),
        (lambda: Utf16Units(math.inf), "units_per_token must be > 0, got inf"),
        (lambda: Recorded(image_tokens=1.5), "image_tokens must be a whole number"),  # type: ignore[arg-type]
        (lambda: Utf16Units(image_tokens=-1), "image_tokens must be a whole number >= 0 or null, got -1"),
        (lambda: ScriptAware(cjk_tokens=0), "cjk_tokens must be > 0, got 0"),
        (lambda: ScriptAware(astral_tokens=-1.0), "astral_tokens must be > 0, got -1.0"),
        (lambda: ScriptAware(other_tokens=math.nan), "other_tokens must be > 0, got nan"),
        (lambda: ScriptChars(cjk_units=0), "cjk_units must be > 0, got 0"),
        (lambda: ScriptChars(other_units=math.nan), "other_units must be > 0, got nan"),
        (lambda: ScriptChars(alphabet_units=5), "must not fall, or more text could have fewer tokens; got 1.6, 5, 4.0"),
        (lambda: CodePoints(math.nan), "code_points_per_token must be > 0, got nan"),
        (lambda: CodePoints(rounding="half"), "rounding must be one of: down, up, got 'half'"),  # type: ignore[arg-type]
        (lambda: Utf8Bytes(0), "bytes_per_token must be > 0, got 0"),
        (lambda: Utf8Bytes(empty_tokens=2), "empty_tokens must be one of: 0, 1, got 2"),
        (lambda: CodePoints(empty_tokens=2), "empty_tokens must be one of: 0, 1, got 2"),
    ],
)
def test_a_setting_out_of_range_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
