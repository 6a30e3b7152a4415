"""One document a message."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from lcm.clock import EPOCH
from lcm.records.conversation import Message, Part
from lcm.writing.annotation.rules import Rules
from lcm.writing.extraction.verbatim import Verbatim
from tests.support.workspaces import LINES, transcript

CALL = Message(
    message_id="call",
    role="assistant",
    content="",
    session_id="s",
    parts=(Part("tool", tool_name="read", tool_input='{"path":"a.py"}', tool_call_id="1"),),
)


def test_every_message_with_words_becomes_a_document_that_names_it() -> None:
    messages = transcript().messages
    candidates = Verbatim(author_prefix=False).extract(messages, incidents=Counter())
    assert [candidate.text for candidate in candidates] == list(LINES)
    assert [candidate.source_message_ids for candidate in candidates] == [(m.message_id,) for m in messages]


def test_the_author_comes_first_where_one_is_named() -> None:
    named = transcript().messages[0]
    texts = [c.text for c in Verbatim().extract([named, replace(named, author=None)], incidents=Counter())]
    assert texts == [f"Ada: {LINES[0]}", LINES[0]]


def test_blank_messages_and_other_roles_make_no_document() -> None:
    message = transcript().messages[0]
    assert Verbatim(roles=["assistant"]).extract([message], incidents=Counter()) == []
    assert Verbatim().extract([replace(message, content=" \n")], incidents=Counter()) == []


def test_a_tool_call_is_found_by_its_name_and_arguments() -> None:
    (candidate,) = Verbatim().extract([CALL], incidents=Counter())
    assert candidate.text == "[tool read] path: a.py"
    assert Verbatim(passages=["words"]).extract([CALL], incidents=Counter()) == []


def test_reasoning_is_said_where_that_is_asked_for() -> None:
    thought = replace(CALL, content="Blue.", parts=(Part("reasoning", "It may be blue."),))
    assert [one.text for one in Verbatim().extract([thought], incidents=Counter())] == ["Blue."]
    (candidate,) = Verbatim(passages=["words", "reasoning"]).extract([thought], incidents=Counter())
    assert candidate.text == "Blue.\n[reasoning] It may be blue."


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="roles must be some of"):
        Verbatim(roles=["robot"])  # type: ignore[list-item]


def test_an_unknown_passage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"passages must be some of words, calls, .*got \['thoughts'\]"):
        Verbatim(passages=["thoughts"])  # type: ignore[list-item]


def test_known_messages_make_no_document() -> None:
    messages = transcript().messages
    assert (
        Verbatim().extract(messages, known=6, incidents=Counter())
        == Verbatim().extract(messages, incidents=Counter())[6:]
    )


def test_the_annotation_is_told_when_each_message_was_said() -> None:
    said = replace(transcript().messages[0], content="It rains today")
    dated, undated = Verbatim(annotation=Rules()).extract([said, replace(said, created_at=None)], incidents=Counter())
    assert said.created_at is not None
    assert dated.valid_until == said.created_at + timedelta(hours=18)
    assert undated.valid_until == EPOCH + timedelta(hours=18)
    assert dated.temporal_type == "dynamic"
