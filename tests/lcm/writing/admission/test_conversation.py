"""The end of a conversation."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.javascript import utf16_length
from lcm.writing.admission.utility import last_chars, last_lines, last_texts
from tests.lcm.writing.admission.tables import messages


def test_the_last_messages_fill_the_room_and_the_first_is_cut() -> None:
    assert last_texts(messages("abcdef", "gh", "i"), 7) == ["ef", "gh", "i"]  # 1 + break + 2 + break + 2


def test_lines_of_a_prompt_name_the_speaker() -> None:
    assert last_lines(messages("hello", "you"), 5) == "user: o\nuser: you"  # 3 + break + 1
    assert last_lines(messages("hello", "you"), 4) == "user: you"


def test_a_character_of_two_units_is_not_cut_in_two() -> None:
    assert last_chars("a😀b", 2) == "b"
    assert last_chars("a😀b", 3) == "😀b"


@given(text=st.text(st.characters(codec="utf-8"), max_size=20), count=st.integers(0, 25))
def test_the_end_of_a_text_is_its_end_and_fits(text: str, count: int) -> None:
    end = last_chars(text, count)
    assert text.endswith(end)
    assert count - 1 <= utf16_length(end) <= count or end == text
