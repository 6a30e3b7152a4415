"""A window that slides over each session."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message, Part
from lcm.writing.annotation.rules import Rules
from lcm.writing.extraction.verbatim import Verbatim
from lcm.writing.extraction.window import Window
from tests.support.workspaces import LINES, transcript


def test_each_message_ends_a_window_of_those_before_it_in_its_session() -> None:
    candidates = Window(size=3).extract(transcript().messages, incidents=Counter())  # sessions of four
    ids = [[i.removeprefix("talk:") for i in candidate.source_message_ids] for candidate in candidates]
    assert ids == [
        ["0"],
        ["0", "1"],
        ["0", "1", "2"],
        ["1", "2", "3"],
        ["4"],
        ["4", "5"],
        ["4", "5", "6"],
        ["5", "6", "7"],
    ]
    assert {candidate.kind for candidate in candidates} == {"window"}


def test_a_window_holds_each_line_with_its_author() -> None:
    candidates = Window(size=2).extract(transcript().messages, incidents=Counter())
    assert candidates[1].text == f"Ada: {LINES[0]}\nBo: {LINES[1]}"
    assert (
        Window(size=2, author_prefix=False).extract(transcript().messages, incidents=Counter())[1].text
        == f"{LINES[0]}\n{LINES[1]}"
    )


def test_a_window_of_one_says_what_verbatim_says() -> None:
    messages = transcript().messages
    assert [
        replace(c, kind="message") for c in Window(size=1).extract(messages, incidents=Counter())
    ] == Verbatim().extract(messages, incidents=Counter())


def test_what_has_no_words_or_another_role_is_passed_over() -> None:
    first, second, third, fourth = transcript().messages[:4]
    blank = replace(second, content=" ")
    tool = replace(third, role="tool")
    candidates = Window(size=2, roles=["user", "assistant"]).extract([first, blank, tool, fourth], incidents=Counter())
    assert [candidate.source_message_ids for candidate in candidates] == [
        (first.message_id,),
        (first.message_id, fourth.message_id),
    ]


def test_tool_calls_are_part_of_the_words_if_wanted() -> None:
    call = Part("tool", tool_name="read", tool_input="{}", tool_call_id="1")
    message = replace(transcript().messages[0], content="", parts=(call,))
    assert [c.text for c in Window().extract([message], incidents=Counter())] == ["Ada: [tool read]"]
    assert Window(passages=["words"]).extract([message], incidents=Counter()) == []


def test_sessions_that_take_turns_keep_their_own_windows() -> None:
    messages = [replace(m, session_id=f"s{i % 2}") for i, m in enumerate(transcript().messages)]
    assert Window(size=2).extract(messages, incidents=Counter())[-1].source_message_ids == ("talk:5", "talk:7")


def test_a_window_is_rated_as_said_with_its_last_message() -> None:
    first, second = transcript().messages[:2]
    (candidate,) = Window(annotation=Rules()).extract(
        [replace(first, content="It rains today"), second], known=1, incidents=Counter()
    )
    assert second.created_at is not None
    assert candidate.valid_until == second.created_at + timedelta(hours=18)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "words"])), max_size=12),
    st.integers(1, 4),
    st.data(),
)
def test_piece_by_piece_gives_the_same_as_all_at_once(
    said: list[tuple[str, str]], size: int, data: st.DataObject
) -> None:
    messages = [Message(f"m{i}", "user", words, session_id=session) for i, (session, words) in enumerate(said)]
    cut = data.draw(st.integers(0, len(messages)))
    window = Window(size=size)
    assert window.extract(messages[:cut], incidents=Counter()) + window.extract(
        messages, cut, incidents=Counter()
    ) == window.extract(messages, incidents=Counter())


@pytest.mark.parametrize(("settings", "message"), [({"size": 0}, "size must be >= 1, got 0"), ({"roles": []}, "roles")])
def test_settings_out_of_range_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Window(**settings)  # type: ignore[arg-type]
