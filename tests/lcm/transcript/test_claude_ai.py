"""Claude.ai exports: messages that name the one which they answer."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.transcript.exports import ClaudeAiReader
from lcm.transcript.reading import joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import columns, heard, read_one, rebuilt, write

READER = ClaudeAiReader()
ROOT_ID = "00000000-0000-4000-8000-000000000000"


def said(key: str, parent: str | None = None, sender: str = "human", **beside: Any) -> dict[str, Any]:
    named = {} if parent is None else {"parent_message_uuid": parent}
    return {"uuid": key, "text": f"words of {key}", "sender": sender} | named | beside


def conversation(*messages: Any, **beside: Any) -> dict[str, Any]:
    return {"uuid": "c1", "name": "Masts", "chat_messages": list(messages)} | beside


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        ({}, {"c1": ["q", "b", "b2"], "c1~a": ["a"]}),
        ({"current_leaf_message_uuid": "a"}, {"c1": ["q", "a"], "c1~b": ["b", "b2"]}),
        ({"current_leaf_message_uuid": "gone"}, {"c1": ["q", "b", "b2"], "c1~a": ["a"]}),
    ],
)
def test_the_branch_that_ends_with_the_leaf_else_the_last_message_is_the_conversation(
    leaf: dict[str, str], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    messages = said("q", ROOT_ID), said("a", "q", "assistant"), said("b", "q", "assistant"), said("b2", "b")
    held = conversation(*messages, **leaf)
    for value, indent in ((held, None), (held, 1), ([held], None)):
        file = RecordedFile(write(tmp_path / "a.json", value, indent=indent))
        assert reader_of(file).name == "claude_ai"
        assert heard(joined(read_pieces(file, READER))) == expected
        assert not [doubt for doubt in file.doubts if "follow" in doubt]


def test_an_export_that_names_no_parents_is_one_conversation(tmp_path: Path) -> None:
    transcript = read_one(write(tmp_path / "a.json", [conversation(said("q"), said("a", sender="assistant"))]), READER)
    assert [(m.role, m.content) for m in transcript.messages] == [("user", "words of q"), ("assistant", "words of a")]
    assert transcript.title == "Masts"


def test_cycles_and_parents_that_are_not_there_are_told(tmp_path: Path) -> None:
    messages = said("q", ROOT_ID), said("x", "gone"), said("y", "z"), said("z", "y"), said("a", "q")
    file = RecordedFile(write(tmp_path / "a.json", conversation(*messages)))
    assert heard(joined(read_pieces(file, READER))) == {"c1": ["q", "a"], "c1~x": ["x"], "c1~y": ["y", "z"]}
    assert any("conversation c1: 2 of 5 messages follow one that is not there" in doubt for doubt in file.doubts)


def test_words_are_those_of_the_blocks_and_of_what_was_read_of_attachments(tmp_path: Path) -> None:
    native = said(
        "q",
        content=[{"type": "text", "text": "Look."}],
        created_at="2026-01-05T09:00:00.250Z",
        attachments=[{"file_name": "plan.txt", "extracted_content": "6.5 m"}, {"file_name": "b.bin"}],
        files=[{"file_name": "boat.png"}],
    )
    transcript = read_one(write(tmp_path / "a.json", conversation(native)), READER)
    (message,) = transcript.messages
    assert message.content == "Look.\n6.5 m"
    assert [(part.part_type, part.text) for part in message.parts] == [
        *(("text", "Look."), ("file", "6.5 m"), ("file", None), ("file", None)),
    ]
    assert message.created_at == datetime(2026, 1, 5, 9, 0, 0, 250_000, UTC)
    assert read_one(write(tmp_path / "b.json", conversation(native)), READER) == transcript


def test_tools_and_thoughts_are_parts(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "Light."},
        {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"q": "mast"}},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "name": "web_search",
            "content": [{"type": "text", "text": "0.4"}],
        },
        {"type": "text", "text": "Spruce."},
    ]
    transcript = read_one(
        write(tmp_path / "a.json", conversation(said("a", None, "assistant", content=blocks))), READER
    )
    (message,) = transcript.messages
    assert message.content == "0.4\nSpruce."
    assert columns(message) == [
        ("reasoning", "Light.", None, None, None, None),
        ("tool", None, "t1", "web_search", '{"q":"mast"}', None),
        ("tool", None, "t1", "web_search", None, None),
        ("text", "Spruce.", None, None, None, None),
    ]


def test_what_stands_in_several_slots_comes_back_in_its_place(tmp_path: Path) -> None:
    natives = [
        said("a", content=[], attachments=[], files=["x", 7]),
        said("b", text="half \ud800", attachments="none"),
        {"sender": "human"},
    ]
    transcript = read_one(write(tmp_path / "a.json", conversation(*natives)), READER)
    assert rebuilt(transcript) == list(map(json.dumps, natives))
