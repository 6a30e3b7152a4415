"""Which words of a message are its plain text."""

from typing import Any

import pytest

from lcm.transcript.plain_text import plain_text

IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
CALL = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "/"}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
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
    ],
)
def test_words_are_found_in_every_shape(content: Any, words: str) -> None:
    assert plain_text({"role": "user", "content": content}) == words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"text": "inside"}', "inside"),
        ('[{"type": "text", "text": "inside"}]', "inside"),
        ('{"n": 1}', '{"n": 1}'),
        ("[1,2", "[1,2"),
        ("{not json}", "{not json}"),
        ("[" * 5000 + "]" * 5000, "[" * 5000 + "]" * 5000),
    ],
)
def test_words_are_found_in_text_that_is_json(content: str, words: str) -> None:
    assert plain_text({"role": "user", "content": content}) == words


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([IMAGE], ""),
        ([IMAGE, {"type": "text", "text": "look"}], "look"),
        ([IMAGE | {"text": "a dog on grass"}], "a dog on grass"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}], ""),
        ([IMAGE, {"type": "odd", "number": 7}], '[{"type":"odd","number":7}]'),
    ],
)
def test_media_give_captions_but_never_data(blocks: list[Any], words: str) -> None:
    assert plain_text({"role": "user", "content": blocks}) == words


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([CALL], ""),
        ([{"type": "text", "text": "Listing."}, CALL], "Listing."),
        ([{"type": "tool_result", "tool_use_id": "c1", "content": "a file"}], "a file"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "a file"}, IMAGE]}], "a file"),
        ([{"type": "function_call_output", "call_id": "c1", "output": "a file"}], "a file"),
        ([{"type": "tool_result", "content": []}], ""),
    ],
)
def test_tool_results_are_words_and_tool_calls_are_not(blocks: list[Any], words: str) -> None:
    assert plain_text({"role": "user", "content": blocks}) == words


def test_nesting_is_followed_seven_levels_down() -> None:
    value: Any = "deep"
    for _ in range(6):
        value = {"content": value}
    assert plain_text({"role": "user", "content": value}) == "deep"
    assert plain_text({"role": "user", "content": {"content": value}}).startswith('{"content"')
