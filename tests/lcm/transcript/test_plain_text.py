"""Which words of a message are its plain text."""

import json
from typing import Any

import pytest

from lcm.transcript.parts import plain_text

IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
CALL = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "/"}}
CONTENTS: list[tuple[Any, str]] = [
    ("plain", "plain"),
    ("  ", "  "),
    (None, ""),
    ([], ""),
    ([{"type": "text", "text": "one"}, {"type": "text", "text": " "}, "two"], "one\ntwo"),
    ([{"type": "thinking", "thinking": "ponder"}, {"type": "text", "text": "done"}], "done"),
    ([{"type": "thinking", "thinking": "ponder", "thinkingSignature": "long"}], ""),
    ([{"type": "text", "text": ""}], ""),
    ({"transcript": "spoken"}, "spoken"),
    ({"segments": [{"text": "a"}, {"text": "b"}]}, "a\nb"),
    ({"payload": {"data": {"value": "deep"}}}, "deep"),
    ([{"type": "odd", "number": 7}], '[{"type":"odd","number":7}]'),
    (12, "12"),
    ("\ud83d", "\ufffd"),
    ("nul \0 inside", "nul \0 inside"),
    # Text that is JSON.
    ('{"text": "inside"}', "inside"),
    ('[{"type": "text", "text": "inside"}]', "inside"),
    *((text, text) for text in ('{"n": 1}', "[1,2", "{not json}", "[" * 5000 + "]" * 5000)),
    # Media give captions, never data.
    ([IMAGE], ""),
    ([IMAGE, {"type": "text", "text": "look"}], "look"),
    ([IMAGE | {"text": "a dog on grass"}], "a dog on grass"),
    ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}], ""),
    ([IMAGE, {"type": "odd", "number": 7}], '[{"type":"odd","number":7}]'),
    (json.dumps(IMAGE), ""),
    (json.dumps([IMAGE, IMAGE]), ""),
    (json.dumps({"content": [IMAGE], "isError": False}), ""),
    (json.dumps([{"type": "text", "text": "look"}, IMAGE]), "look"),
    ({"type": "content", "value": [{"type": "media", "data": "aGVsbG8=", "mediaType": "image/png"}]}, ""),
    *((text, text) for text in ('[{"type": "file", "name": "a.py"}]', '{"content": []}')),
    # Results of tools are words, calls are not.
    ([CALL], ""),
    ([{"type": "text", "text": "Listing."}, CALL], "Listing."),
    ([{"type": "tool_result", "tool_use_id": "c1", "content": "a file"}], "a file"),
    ([{"type": "tool_result", "content": [{"type": "text", "text": "a file"}, IMAGE]}], "a file"),
    ([{"type": "function_call_output", "call_id": "c1", "output": "a file"}], "a file"),
    ([{"type": "tool_result", "content": []}], ""),
]


@pytest.mark.parametrize(("content", "words"), CONTENTS)
def test_words_are_found_in_every_shape(content: Any, words: str) -> None:
    assert plain_text({"role": "user", "content": content}) == words


def test_nesting_is_followed_seven_levels_down() -> None:
    value: Any = "deep"
    for _ in range(6):
        value = {"content": value}
    assert plain_text({"role": "user", "content": value}) == "deep"
    assert plain_text({"role": "user", "content": {"content": value}}).startswith('{"content"')
