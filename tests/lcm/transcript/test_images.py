"""An image costs its flat price, whatever its size and however a format writes it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcm.context.assembly.lossless import Lossless
from lcm.protocols.context import ContextRequest
from lcm.records.conversation import Message
from lcm.store.store import Store
from lcm.token_estimator import ScriptAware
from lcm.transcript.message_tokens import message_tokens, without_images
from lcm.transcript.parts import decompose, rebuild_record
from lcm.transcript.reading import read_transcripts
from lcm.transcript.rendering import rendered, runtime_messages

TOKENS = ScriptAware()
WORDS = "The gauge on the tank."
AT = "2026-09-10T08:00:00.000Z"

Block = dict[str, Any]


def data_url(data: str) -> str:
    return f"data:image/png;base64,{data}"


def anthropic(data: str) -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def claude_code(content: list[Block]) -> str:
    message = {"role": "user", "content": content}
    return json.dumps({"type": "user", "uuid": "u", "sessionId": "s", "timestamp": AT, "message": message})


def codex(item: Block) -> str:
    header = {"timestamp": AT, "type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}
    return "\n".join(map(json.dumps, (header, {"timestamp": AT, "type": "response_item", "payload": item})))


def codex_result(output: object) -> str:
    return codex({"type": "function_call_output", "call_id": "c", "output": output})


def openclaw(message: Block) -> str:
    header = {"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/w"}
    entry = {"type": "message", "id": "m", "parentId": None, "timestamp": AT, "message": message}
    return f"{json.dumps(header)}\n{json.dumps(entry)}"


def gemini(message: Block) -> str:
    message = {"id": "m", "timestamp": AT, **message}
    return json.dumps(
        {"sessionId": "s", "projectHash": "0f", "startTime": AT, "lastUpdated": AT, "messages": [message]}
    )


def chat(*content: Block) -> str:
    return json.dumps({"role": "user", "content": [{"type": "text", "text": WORDS}, *content]})


def gemini_call(result: list[Block]) -> str:
    call = {"id": "c", "name": "look", "args": {}, "result": result}
    return gemini({"type": "gemini", "content": "", "toolCalls": [call]})


def goose(*content: Block) -> str:
    header = {"working_dir": "/w", "description": "Gauges"}
    return "\n".join(map(json.dumps, (header, {"role": "user", "created": 1789027200, "content": content})))


def goose_result(data: str, audience: str) -> str:
    shown = {"type": "image", "data": data, "mimeType": "image/png", "annotations": {"audience": [audience]}}
    told = {"type": "text", "text": WORDS}
    return goose({"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": [told, shown]}})


def opencode(*parts: Block) -> str:
    info = {"id": "m", "role": "assistant", "time": {"created": 1789027200000}}
    return json.dumps({"info": {"id": "ses_1"}, "messages": [{"info": info, "parts": parts}]})


FORMS: dict[str, Callable[[str], str]] = {
    "claude_code, said": lambda data: claude_code([{"type": "text", "text": WORDS}, anthropic(data)]),
    "claude_code, result": lambda data: claude_code(
        [{"type": "tool_result", "tool_use_id": "t", "content": [anthropic(data)]}]
    ),
    "codex, said": lambda data: codex(
        {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": data_url(data)}]}
    ),
    "codex, result": lambda data: codex_result([{"type": "input_image", "image_url": data_url(data)}]),
    "codex, result beside words": lambda data: codex_result(
        [{"type": "input_text", "text": WORDS}, {"type": "input_image", "image_url": data_url(data)}]
    ),
    "codex, result as JSON text": lambda data: codex_result(
        json.dumps([{"type": "image", "data": data, "mimeType": "image/png"}])
    ),
    "openclaw, said": lambda data: openclaw(
        {"role": "user", "content": [{"type": "text", "text": WORDS}, {"type": "image", "data": data, "mimeType": "x"}]}
    ),
    "openclaw, result": lambda data: openclaw(
        {"role": "toolResult", "toolCallId": "t", "toolName": "look", "content": [{"type": "image", "data": data}]}
    ),
    "gemini, said": lambda data: gemini(
        {"type": "user", "content": [{"text": WORDS}, {"inlineData": {"mimeType": "image/png", "data": data}}]}
    ),
    "gemini, result": lambda data: gemini_call(
        [
            {"functionResponse": {"id": "c", "response": {"output": "read"}}},
            {"inlineData": {"mimeType": "image/jpeg", "data": data}},
        ]
    ),
    "chat, data URL": lambda data: chat({"type": "image_url", "image_url": {"url": data_url(data)}}),
    "chat, a picture elsewhere": lambda data: chat(
        {"type": "image_url", "image_url": {"url": f"https://example.org/{len(data)}.png"}}
    ),
    "chat, file part": lambda data: chat({"type": "file", "mediaType": "image/png", "url": data_url(data)}),
    "chat, in words": lambda data: json.dumps({"role": "user", "content": f"{WORDS} ![gauge]({data_url(data)})"}),
    "goose, said": lambda data: goose({"type": "image", "data": data, "mimeType": "image/png"}),
    "goose, result": lambda data: goose_result(data, "assistant"),
    "opencode, file": lambda data: opencode({"type": "file", "mime": "image/png", "url": data_url(data)}),
    "opencode, result": lambda data: opencode(
        {"type": "tool", "tool": "read", "state": {"attachments": [{"mime": "image/png", "url": data_url(data)}]}}
    ),
    "sharegpt, in words": lambda data: json.dumps(
        {"id": "s", "conversations": [{"from": "human", "value": f"{WORDS} ![gauge]({data_url(data)})"}]}
    ),
}


def said(tmp_path: Path, form: str, data: str) -> list[Message]:
    path = tmp_path / f"{len(data)}.jsonl"
    path.write_text(FORMS[form](data))
    [transcript] = read_transcripts(path)
    return list(transcript.messages)


@pytest.mark.parametrize("form", FORMS)
def test_an_image_costs_its_price_and_not_its_text(tmp_path: Path, form: str) -> None:
    small, large = (said(tmp_path, form, "iVBORw0KGgo" * times) for times in (10, 8000))
    [(bare, images)] = [without_images(message) for message in large]
    assert images == 1
    assert "iVBORw0KGgo" not in rendered(bare)
    [cost] = message_tokens(large, rendered, TOKENS)
    assert cost == 1200 + TOKENS.count([rendered(bare)])[0] < 1230
    assert message_tokens(small, rendered, TOKENS) == [cost]
    assert message_tokens(large, rendered, ScriptAware(image_tokens=70)) == [cost - 1130]
    as_text = ScriptAware(image_tokens=None)
    assert message_tokens(large, rendered, as_text) == as_text.count([rendered(message) for message in large])


def test_an_image_that_a_tool_showed_the_user_alone_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "goose.jsonl"
    path.write_text(goose_result("iVBORw0KGgo" * 8000, "user"))
    [transcript] = read_transcripts(path)
    assert message_tokens(transcript.messages, rendered, TOKENS)[0] < 30


@pytest.mark.parametrize("form", FORMS)
def test_store_and_context_count_the_same(tmp_path: Path, form: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(FORMS[form]("iVBORw0KGgo" * 8000))
    [transcript] = read_transcripts(path)
    with Store() as store:
        store.ingest(transcript, TOKENS, rendered)
        key = transcript.conversation_id
        [entry] = store.context(key)
        [context] = Lossless(TOKENS).assemble(store.context_records(key), [ContextRequest(5000)])
        assert store.image_counts(key) == {transcript.messages[0].message_id: 1}
    assert 1200 <= entry.tokens < 1230
    assert 1200 <= context.tokens < 1230


@pytest.mark.parametrize("form", ["codex, result", "codex, result beside words"])
def test_a_result_is_shown_with_its_image(tmp_path: Path, form: str) -> None:
    """Not as the JSON of the image, which a model would read and be billed for as text."""
    [message] = said(tmp_path, form, "iVBORw0KGgo" * 100)
    shown = [block for one in runtime_messages(message) for block in one["content"]]
    assert [block["type"] for block in shown if block["type"] != "text"] == ["input_image"]
    assert "iVBORw0KGgo" not in "".join(block.get("text", "") for block in shown)


@pytest.mark.parametrize(
    "native",
    [
        {"role": "user", "content": "An image says more than data:image."},
        {"role": "user", "content": [{"type": "text", "text": '{"type": "image"}'}, {"type": "image"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "input": {"type": "image", "data": "AA"}}]},
        {"role": "user", "content": [{"type": "document", "source": {"media_type": "application/pdf", "data": "AA"}}]},
        {"role": "user", "content": [{"type": "input_audio", "data": "AA", "mimeType": "audio/wav"}]},
        {"role": "user", "content": [None, 3, ["x"], {"image": "of a tank"}]},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_image_stays_as_it_is(native: Block) -> None:
    parts = decompose(native)
    message = Message("m", parts.role, parts.content, "s", parts=parts.parts, envelope=parts.envelope)
    assert without_images(message) == (message, 0)


def test_images_are_counted_one_by_one_and_the_message_keeps_them(tmp_path: Path) -> None:
    picture, several = {"type": "image", "data": "AA"}, {"type": "image", "image_urls": ["a.png", "b.png"]}
    nested = {"type": "tool_result", "tool_use_id": "t", "content": [picture, {"type": "text", "text": WORDS}]}
    line = claude_code([picture, several, nested])
    (tmp_path / "talk.jsonl").write_text(line)
    [message] = read_transcripts(tmp_path / "talk.jsonl")[0].messages
    assert without_images(message)[1] == 1 + 2 + 1
    assert rebuild_record(message) == json.loads(line)
