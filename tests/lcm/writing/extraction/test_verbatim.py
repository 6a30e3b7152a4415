"""One document a message."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lcm.clock import EPOCH
from lcm.records.conversation import Message, Part
from lcm.records.document import Candidate
from lcm.writing.annotation import Rules
from lcm.writing.extraction.said import Verbatim
from tests.support.workspaces import LINES, transcript

CALL = Message(
    message_id="call",
    role="assistant",
    content="",
    session_id="s",
    parts=(Part("tool", tool_name="read", tool_input='{"path":"a.py"}', tool_call_id="1"),),
)


def extracted(messages: Sequence[Message], known: int = 0, **settings: Any) -> list[Candidate]:
    return Verbatim(**settings).extract(messages, known, incidents=Counter())


def test_every_message_with_words_becomes_a_document_that_names_it_unless_it_is_known() -> None:
    messages = transcript().messages
    candidates = extracted(messages, author_prefix=False)
    assert [candidate.text for candidate in candidates] == list(LINES)
    assert [candidate.source_message_ids for candidate in candidates] == [(m.message_id,) for m in messages]
    assert extracted(messages, known=6, author_prefix=False) == candidates[6:]


def test_the_author_comes_first_where_one_is_named() -> None:
    named = transcript().messages[0]
    texts = [candidate.text for candidate in extracted([named, replace(named, author=None)])]
    assert texts == [f"Ada: {LINES[0]}", LINES[0]]


def test_blank_messages_and_other_roles_make_no_document() -> None:
    message = transcript().messages[0]
    assert extracted([message], roles=["assistant"]) == extracted([replace(message, content=" \n")]) == []


def test_calls_are_said_by_name_and_arguments_and_reasoning_where_that_is_asked_for() -> None:
    thought = replace(CALL, content="Blue.", parts=(Part("reasoning", "It may be blue."),))
    assert [one.text for one in extracted([CALL, thought])] == ["[tool read] path: a.py", "Blue."]
    (alone,) = extracted([CALL, thought], passages=["words", "reasoning"])
    assert alone.text == "Blue.\n[reasoning] It may be blue."


def test_an_unknown_role_and_an_unknown_passage_are_refused() -> None:
    with pytest.raises(ValueError, match="roles must be some of"):
        Verbatim(roles=["robot"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"passages must be some of words, calls, .*got \['thoughts'\]"):
        Verbatim(passages=["thoughts"])  # type: ignore[list-item]


def test_the_annotation_is_told_when_each_message_was_said() -> None:
    said = replace(transcript().messages[0], content="It rains today")
    dated, undated = extracted([said, replace(said, created_at=None)], annotation=Rules())
    assert said.created_at is not None
    assert dated.valid_until == said.created_at + timedelta(hours=18)
    assert undated.valid_until == EPOCH + timedelta(hours=18)
    assert dated.temporal_type == "dynamic"
