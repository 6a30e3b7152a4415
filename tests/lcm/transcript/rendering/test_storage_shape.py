"""What the original's store would hold of a message, and what its tokens are counted from."""

import json
from typing import Any

import pytest

from lcm.javascript import parse, stringify
from lcm.records.conversation import Message
from lcm.transcript.rendering.storage_shape import rendered, stored_content
from lcm.transcript.rendering.stored_parts import stored_parts
from tests.lcm.context.assembly.recorded import assistant, message, user

IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "toolCall", "id": "c", "name": "run", "arguments": {}}], ""),
        ([], ""),
        (None, ""),
        ([{"type": "other", "output": {"value": ["deep", {"transcript": "er"}]}}], "deep\ner"),
        ([{"type": "audio", "segments": [{"text": "one"}, {"text": "two"}]}], "one\ntwo"),
        ([{"type": "toolResult", "toolOutputExternalized": True, "output": "[reference]"}], "[reference]"),
        ([{"type": "toolResult", "output": "not to be seen"}], ""),
        ({"odd": 1.0}, '{"odd":1}'),
        ([{"type": "other", "value": '{"text": "inside JSON"}'}], "inside JSON"),
    ],
)
def test_the_words_of_content(content: Any, words: str) -> None:
    assert stored_content(message({"role": "toolResult", "toolCallId": "c", "content": content})) == words


def test_the_words_of_a_shell_command() -> None:
    native = {"role": "bashExecution", "command": "ls", "output": "a.txt"}
    assert stored_content(message(native)) == "$ ls\na.txt"
    assert [(part.part_type, part.metadata["source"]) for part in stored_parts(native)] == [("text", "bash-exec")]


@pytest.mark.parametrize(
    "block",
    [
        IMAGE,
        {"type": "image", "source": {"type": "base64", "data": IMAGE["data"]}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE['data']}"}},
        {"type": "wrapped", "inner": IMAGE},
        {"type": "document", "data": IMAGE["data"]},
    ],
)
def test_media_never_stand_among_the_words(block: dict[str, Any]) -> None:
    assert IMAGE["data"] not in stored_content(message({"role": "user", "content": [block]}))
    caption = {"role": "user", "content": [{"type": "text", "text": "look"}, block]}
    assert stored_content(message(caption)) == "look"


def test_a_text_that_is_json_stays_that_text() -> None:
    text = '{"text": "shorter", "rest": "would be lost"}'
    assert stored_content(user(text)) == text


def test_the_words_of_a_message_without_a_recorded_original_are_its_content() -> None:
    assert stored_content(Message("m", "user", "made by hand", "s")) == "made by hand"


def test_tokens_of_a_users_single_text_are_those_of_its_words() -> None:
    assert rendered(message({"role": "user", "content": [{"type": "text", "text": "hi"}]})) == "hi"
    assert rendered(user("hi")) == "hi"


def test_tokens_of_anything_else_are_those_of_the_blocks_as_json() -> None:
    assert rendered(assistant("hi")) == '[{"type":"text","text":"hi"}]'
    assert rendered(message({"role": "compactionSummary", "summary": "no content"})) == ""


def test_arguments_come_back_from_their_column_without_other_keys() -> None:
    block = {"type": "toolCall", "id": "c", "name": "run", "arguments": {"n": 1.0}, "thoughtSignature": "x"}
    shown = json.loads(rendered(message({"role": "assistant", "content": [block]})))
    assert shown == [{"type": "toolCall", "id": "c", "name": "run", "arguments": {"n": 1}}]


def test_a_reasoning_item_of_openai_comes_back_from_its_signature() -> None:
    item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}
    block = {"type": "thinking", "thinking": "", "thinkingSignature": json.dumps(item)}
    assert json.loads(rendered(message({"role": "assistant", "content": [block]}))) == [item]


def test_a_renamed_block_is_kept_under_its_recorded_type() -> None:
    block = {"type": "text", "text": "[reference]", "rawType": "tool_result", "tool_use_id": "c"}
    [part] = stored_parts({"role": "toolResult", "toolCallId": "c", "content": [block]})
    assert (part.part_type, part.tool_call_id) == ("tool", "c")
    assert part.metadata["raw"]["type"] == "tool_result"
    said = message({"role": "toolResult", "toolCallId": "c", "content": [block]})
    assert rendered(said) == '[{"type":"text","text":"[reference]"}]'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        ({"b": 1, "a": [0.5]}, '{"b":1,"a":[0.5]}'),
        ("é\n", '"é\\n"'),
        ("\ud83d", '"\\ud83d"'),
        (2e20, "2" + "0" * 20),
    ],
)
def test_json_is_written_as_javascript_does(value: Any, text: str) -> None:
    assert stringify(value) == text


@pytest.mark.parametrize("text", ["NaN", "[1,", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)
