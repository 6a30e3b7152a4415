"""A window that slides over each session."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lcm.records.conversation import Message, Part
from lcm.records.document import Candidate
from lcm.writing.annotation import Rules
from lcm.writing.extraction.said import Verbatim, Window
from tests.lcm.refusals import assert_refused
from tests.support.workspaces import LINES, transcript


def extracted(messages: Sequence[Message], known: int = 0, **settings: Any) -> list[Candidate]:
    return Window(**settings).extract(messages, known, incidents=Counter())


def sources(candidates: list[Candidate]) -> list[str]:
    """The numbers of their messages, side by side."""
    return ["".join(i.removeprefix("talk:") for i in candidate.source_message_ids) for candidate in candidates]


def test_each_message_ends_a_window_of_those_before_it_in_its_session() -> None:
    candidates = extracted(transcript().messages, size=3)  # sessions of four
    assert sources(candidates) == ["0", "01", "012", "123", "4", "45", "456", "567"]
    assert {candidate.kind for candidate in candidates} == {"window"}
    in_turn = [replace(m, session_id=f"s{i % 2}") for i, m in enumerate(transcript().messages)]
    assert sources(extracted(in_turn, size=2)) == ["0", "1", "02", "13", "24", "35", "46", "57"]


def test_a_window_holds_each_line_with_its_author_and_one_of_one_says_what_verbatim_says() -> None:
    messages = transcript().messages
    assert extracted(messages, size=2)[1].text == f"Ada: {LINES[0]}\nBo: {LINES[1]}"
    assert extracted(messages, size=2, author_prefix=False)[1].text == f"{LINES[0]}\n{LINES[1]}"
    alone = [replace(candidate, kind="message") for candidate in extracted(messages, size=1)]
    assert alone == Verbatim().extract(messages, incidents=Counter())


def test_what_has_no_words_or_another_role_is_passed_over() -> None:
    first, second, third, fourth = transcript().messages[:4]
    blank, tool = replace(second, content=" "), replace(third, role="tool")
    assert sources(extracted([first, blank, tool, fourth], size=2, roles=["user", "assistant"])) == ["0", "03"]


def test_tool_calls_are_part_of_the_words_if_wanted() -> None:
    call = Part("tool", tool_name="read", tool_input="{}", tool_call_id="1")
    message = replace(transcript().messages[0], content="", parts=(call,))
    assert [candidate.text for candidate in extracted([message])] == ["Ada: [tool read]"]
    assert extracted([message], passages=["words"]) == []


def test_a_window_is_rated_as_said_with_its_last_message() -> None:
    first, second = transcript().messages[:2]
    (candidate,) = extracted([replace(first, content="It rains today"), second], known=1, annotation=Rules())
    assert second.created_at is not None
    assert candidate.valid_until == second.created_at + timedelta(hours=18)


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(Window, "be >= 1", size=0)
    with pytest.raises(ValueError, match="roles"):
        Window(roles=[])
