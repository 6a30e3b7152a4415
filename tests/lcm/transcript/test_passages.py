"""What a message says is told once, whole, as a reader reads it."""

import json
from dataclasses import replace

from hypothesis import given

from lcm.records.conversation import LargeFile, Message, Part, Role
from lcm.transcript.parts import decompose, tool_calls
from lcm.transcript.passages import Passage, parts_text, passages, spoken, text_of
from tests.lcm.store.contents import json_values


def recorded(native: dict[str, object]) -> Message:
    said = decompose(native)
    return Message("m", said.role, said.content, "s", parts=said.parts, envelope=said.envelope)


def made(content: str, *parts: Part, role: Role = "assistant") -> Message:
    return Message("m", role, content, "s", parts=parts)


def test_arguments_are_told_with_their_line_breaks_and_marks_as_they_were() -> None:
    edits = [{"old": "x\ny", "n": 1.50}]
    given = json.dumps({"path": "a.py", "content": 'print("é")\nls', "edits": edits, "all": None})
    assert passages(made("Look.", Part("tool", tool_name="write", tool_input=given))) == [
        Passage("words", "Look."),
        Passage("calls", '[tool write] path: a.py\ncontent: print("é")\nls\nedits: [{old: x\ny, n: 1.5}]\nall: null'),
    ]


def test_arguments_that_are_no_json_and_calls_without_arguments_are_told_as_they_stand() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    told = {
        "[tool apply_patch] *** Begin Patch\n{": Part("tool", tool_name="apply_patch", tool_input="*** Begin Patch\n{"),
        "[tool list_files]": Part("tool", tool_name="list_files"),
        "[tool] ls -la": Part("tool", tool_input='"ls -la"'),
        f"[tool x] {deep}": Part("tool", tool_name="x", tool_input=deep),
    }
    assert parts_text(made("", *told.values())) == "\n".join(told)


def test_what_the_words_give_already_is_not_told_twice() -> None:
    for native in (
        {"role": "user", "content": "hello there"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "the port is 8443"}]},
        {"role": "tool", "tool_call_id": "t", "content": '{"port": 8443, "open": true}'},
        {"role": "toolResult", "toolCallId": "t", "content": [{"type": "text", "text": "one\ntwo"}]},
    ):
        assert parts_text(recorded(native)) == ""


def test_what_the_words_leave_out_of_a_result_is_told() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": {"message": "ok", "code": 7, "rows": ["a b"]}}
    message = recorded({"role": "user", "content": [result]})
    assert message.content == "ok"
    assert parts_text(message) == "[result] message: ok\ncode: 7\nrows: [a b]"
    same_words = made("The key is 7 not 5.", Part("reasoning", "The key is 5 not 7."))
    assert parts_text(same_words) == "[reasoning] The key is 5 not 7."
    escaped = recorded({"role": "tool", "content": '{"stdout": "one\\nkettle"}'})
    assert parts_text(escaped) == "[result] stdout: one\nkettle"


def test_a_result_among_the_blocks_of_an_assistant_is_no_call() -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "name": "search", "content": [{"type": "text", "text": "dry"}]}
    message = recorded({"role": "assistant", "content": [block]})
    assert passages(message) == [Passage("words", "dry")]
    assert tool_calls(message) == 0


def test_of_a_text_that_the_words_give_otherwise_the_other_words_are_told() -> None:
    message = made("Hello, the port is 8443.", Part("text", "{vocalsound} Hello, the the port is {gap} 8443."))
    assert parts_text(message) == "[text] vocalsound gap"
    assert parts_text(made("a title", Part("text", "quite another text"))) == "[text] quite another text"
    mostly_other = "one two three four five"
    assert parts_text(made("one two", Part("text", mostly_other))) == f"[text] {mostly_other}"


def test_pictures_and_secrets_say_nothing_but_their_names() -> None:
    data = "iVBORw0KGgo" * 400
    picture = {"type": "image", "source": {"type": "base64", "data": data}, "caption": "a red kettle"}
    secret = {"type": "redacted_thinking", "data": data}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "seen"}, {"type": "image", "data": data}]}
    message = recorded({"role": "user", "content": [picture, secret, result]})
    assert (
        text_of(message, ("words", "calls", "results", "reasoning", "files", "others")) == "seen\n[file] a red kettle"
    )


def test_reasoning_large_texts_and_other_parts_are_told_by_their_kinds() -> None:
    message = made("So.", Part("reasoning", "It may be blue."), Part("patch", "-a\n+b"))
    assert [passage.kind for passage in passages(message)] == ["words", "reasoning", "others"]
    assert parts_text(message) == "[reasoning] It may be blue.\n[patch] -a\n+b"
    beside = recorded({"role": "assistant", "content": "So.", "reasoning_content": "It may be blue."})
    assert parts_text(beside) == "[reasoning] It may be blue."
    file = LargeFile("file_1", 0, 0, None, None, 9, "")
    large = replace(made("[a file]", Part("text", "row 1\nrow 2"), role="user"), files=(file,))
    assert [passage.kind for passage in passages(large)] == ["words", "files"]
    assert text_of(large, ("words", "calls", "results")) == "[a file]"


@given(json_values)
def test_every_text_of_a_value_is_spoken(value: object) -> None:
    waiting, texts = [json.loads(json.dumps(value))], list[str]()
    while waiting:
        match waiting.pop():
            case str(text):
                texts.append(text)
            case list(ones):
                waiting += ones
            case dict(held):
                waiting += held.values()
    told = spoken(value)
    assert all(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") in told for text in texts)
