"""What the original's store would hold of a message, and what its tokens are counted from."""

import json
from typing import Any

import pytest

from lcm.javascript import parse, stringify
from lcm.records.conversation import Message
from lcm.transcript.rendering import rendered, stored_content, stored_parts
from tests.lcm.context.assembly.recorded import message, user

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


def test_words_that_have_no_blocks_stay_as_they_are() -> None:
    json_text = '{"text": "shorter", "rest": "would be lost"}'
    assert stored_content(user(json_text)) == json_text
    assert stored_content(Message("m", "user", "made by hand", "s")) == "made by hand"
    native = {"role": "bashExecution", "command": "ls", "output": "a.txt"}
    assert stored_content(message(native)) == "$ ls\na.txt"
    assert [(part.part_type, part.metadata["source"]) for part in stored_parts(native)] == [("text", "bash-exec")]


REASONING = {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}
CALL = {"type": "toolCall", "id": "c", "name": "run", "arguments": {"n": 1.0}}


@pytest.mark.parametrize(
    ("native", "text"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, "hi"),  # a user's single text
        ({"role": "user", "content": "hi"}, "hi"),
        ({"role": "assistant", "content": "hi"}, '[{"type":"text","text":"hi"}]'),
        ({"role": "compactionSummary", "summary": "no content"}, ""),
        # Arguments come back from their column without other keys, a reasoning item from its signature.
        (
            {"role": "assistant", "content": [CALL | {"thoughtSignature": "x"}]},
            '[{"type":"toolCall","id":"c","name":"run","arguments":{"n":1}}]',
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "", "thinkingSignature": json.dumps(REASONING)}],
            },
            json.dumps([REASONING], separators=(",", ":")),
        ),
    ],
)
def test_tokens_are_those_of_the_blocks_as_json(native: dict[str, Any], text: str) -> None:
    assert rendered(message(native)) == text


def test_a_renamed_block_is_kept_under_its_recorded_type() -> None:
    block = {"type": "text", "text": "[reference]", "rawType": "tool_result", "tool_use_id": "c"}
    [part] = stored_parts({"role": "toolResult", "toolCallId": "c", "content": [block]})
    assert (part.part_type, part.tool_call_id) == ("tool", "c")
    assert part.metadata["raw"]["type"] == "tool_result"
    said = message({"role": "toolResult", "toolCallId": "c", "content": [block]})
    assert rendered(said) == '[{"type":"text","text":"[reference]"}]'


def test_json_is_written_and_read_as_javascript_does() -> None:
    values = [1.0, {"b": 1, "a": [0.5]}, "é\n", "\ud83d", 2e20]
    texts = ["1", '{"b":1,"a":[0.5]}', '"é\\n"', '"\\ud83d"', "2" + "0" * 20]
    assert list(map(stringify, values)) == texts
    for text in ("NaN", "[1,", "[" * 100_000):
        with pytest.raises(ValueError, match=r"."):
            parse(text)
