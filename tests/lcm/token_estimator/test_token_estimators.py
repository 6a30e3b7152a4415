"""The token estimate is a quarter of the UTF-16 length, rounded up."""

import math
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.encoding import well_formed
from lcm.javascript import Half, first_units, utf16_length
from lcm.token_estimator.code_points import CodePoints
from lcm.token_estimator.script_chars import ScriptChars
from lcm.token_estimator.utf8_bytes import Utf8Bytes
from lcm.token_estimator.utf16_units import Utf16Units
from lcm.token_estimator.weighted import ScriptAware

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@pytest.mark.parametrize(
    ("text", "units"), [("", 0), ("abc", 3), ("日本語", 3), ("👍", 2), ("e\u0301", 2), ("\ud800", 1), ("a\ud83d", 2)]
)
def test_utf16_length_is_what_javascript_reports(text: str, units: int) -> None:
    assert utf16_length(text) == units


@given(ANY_TEXT)
def test_utf16_length_counts_characters_beyond_the_basic_plane_twice(text: str) -> None:
    assert utf16_length(text) == len(text) + sum(ord(character) > 0xFFFF for character in text)


@pytest.mark.parametrize(
    ("half", "cut"),
    [("kept", "a\ud83d"), ("replaced", "a\ufffd"), ("dropped", "a")],
    ids=["kept", "replaced", "dropped"],
)
def test_a_cut_through_a_character_leaves_half_of_it_or_a_mark_or_nothing(half: Half, cut: str) -> None:
    assert first_units("a😀b", 2, half) == cut
    assert [first_units("a😀b", units, half) for units in (0, 1, 3, 4, 9)] == ["", "a", "a😀", "a😀b", "a😀b"]
    assert first_units("a\ud83d\ude00b", 2, half) == cut, "two halves that stand side by side are a character"


@given(ANY_TEXT, st.integers(0, 12))
def test_the_first_units_are_a_beginning(text: str, units: int) -> None:
    raw = text.encode("utf-16-le", "surrogatepass")
    kept = first_units(text, units, "kept")
    assert kept.encode("utf-16-le", "surrogatepass") == raw[: 2 * units]
    assert first_units(text, units, "replaced") == well_formed(kept)
    around = raw[2 * units - 2 : 2 * units + 2]  # the units before and behind the cut
    is_cut = len(around) == 4 and len(around.decode("utf-16-le", "surrogatepass")) == 1
    assert first_units(text, units, "dropped") == (kept[:-1] if is_cut else kept)


def test_tokens_are_a_quarter_rounded_up() -> None:
    assert Utf16Units().count(["", "a", "abcd", "abcde", "👍👍👍"]) == [0, 1, 1, 2, math.ceil(6 / 4)]


@given(st.lists(ANY_TEXT))
def test_an_estimate_does_not_depend_on_the_batch(texts: list[str]) -> None:
    estimator = Utf16Units()
    counts = estimator.count(texts)
    assert counts == [estimator.count([text])[0] for text in texts]
    assert all(count >= 0 for count in counts)


@pytest.mark.parametrize("units_per_token", [0, -1.0, math.nan, math.inf])
def test_units_per_token_must_be_positive(units_per_token: float) -> None:
    with pytest.raises(ValueError, match=r"units_per_token must be > 0, got"):
        Utf16Units(units_per_token)


def test_an_estimator_travels() -> None:
    assert pickle.loads(pickle.dumps(Utf16Units(3.0))) == Utf16Units(3.0)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("abcd", 1),
        ("日本語", math.ceil(3 * 1.5)),
        ("カタ、ひら한", math.ceil(6 * 1.5)),
        ("👍👍", 2 * 2),
        ("𠀀", 2),
        ("naïve 日", math.ceil(6 * 0.25 + 1.5)),
        ("\ud83d", 1),
    ],
)
def test_scripts_cost_what_models_make_of_them(text: str, tokens: int) -> None:
    assert ScriptAware().count([text]) == [tokens]


@pytest.mark.parametrize("field", ["cjk_tokens", "astral_tokens", "other_tokens"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf])
def test_every_character_costs_something(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} must be > 0, got"):
        ScriptAware(**{field: value})


@pytest.mark.parametrize(
    ("text", "units_per_token"),
    [
        ("a plain text", 4.0),
        ("Встреча завтра", 2.5),
        ("שלום עולם", 2.5),
        ("مرحبا", 2.5),
        ("明日 meeting", 1.6),
        ("Встреча 明日", 1.6),  # one character decides
        ("안녕하세요", 1.6),
        ("ｶﾀｶﾅ", 4.0),  # half-width
        ("Καλημέρα", 4.0),
        ("😀😀😀", 4.0),
    ],
)
def test_one_character_says_how_many_units_a_token_has(text: str, units_per_token: float) -> None:
    assert ScriptChars().count([text]) == [math.ceil(utf16_length(text) / units_per_token)]


@pytest.mark.parametrize(
    ("text", "down", "up"), [("a", 1, 1), ("abcd", 1, 1), ("abcde", 1, 2), ("日本語日本語日", 1, 2), ("😀" * 8, 2, 2)]
)
def test_code_points_are_quartered_down_or_up_and_never_free(text: str, down: int, up: int) -> None:
    assert CodePoints().count([text]) == [down]
    assert CodePoints(rounding="up").count([text]) == [up]


def test_an_empty_text_is_free_unless_it_is_said_not_to_be() -> None:
    assert CodePoints().count([""]) == [0]
    assert CodePoints(empty_tokens=1).count([""]) == [1]
    assert Utf8Bytes().count([""]) == [0]
    assert Utf8Bytes(empty_tokens=1).count([""]) == [1]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("a", 1), ("abcd", 1), ("abcdefgh", 2), ("é" * 4, 2), ("日本語日本語日", 5), ("😀", 1), ("\ud800" * 4, 3)],
)
def test_bytes_are_quartered_down_and_never_free(text: str, tokens: int) -> None:
    assert Utf8Bytes().count([text]) == [tokens]


@given(st.text(st.characters(codec="ascii")))
def test_of_ascii_bytes_are_code_points(text: str) -> None:
    assert Utf8Bytes().count([text]) == CodePoints().count([text])


@pytest.mark.parametrize(
    ("make", "words"),
    [
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
def test_settings_of_script_chars_and_code_points_are_checked(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
