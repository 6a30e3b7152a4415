"""Calls of tools and their results, counted in recorded files by `json.loads` alone: no reader of ours has a say."""

import gzip
import json
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

_LISTS = ("messages", "history", "traj", "chat_messages", "conversations")
_WITHIN = ("message", "data", "kwargs")
"""Keys under which a record has its message."""
_SILENT = ("null", "recall", "change_agent_state", "agent_state_changed")
_SPOKEN = ("message", "finish", "think", "system")
_PICTURES = ("image", "image_url", "input_image")


class Recorded(NamedTuple):
    """A call or a result: the tool's name, where it stands there, and every text in its arguments or result."""

    kind: str
    name: str
    texts: tuple[str, ...]


def recorded(path: Path, put_aside: Container[int] = ()) -> list[Recorded]:
    """Every call and every result in a file, but of lines that were put aside."""
    if path.suffix == ".parquet":
        return [found for row in pl.read_parquet(path).iter_rows(named=True) for found in _of_row(row)]
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [found for message in _messages(text, put_aside) for found in _of(message)]


def _messages(text: str, put_aside: Container[int]) -> Iterator[Mapping[str, Any]]:
    try:
        records = [json.loads(text)]
    except ValueError:
        records = [
            json.loads(line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and n not in put_aside
        ]
    records = [one for record in records for one in (record if isinstance(record, list) else [record])]
    latest = {
        str(one["id"]): one for one in records if isinstance(one, dict) and one.get("type") == "gemini" and "id" in one
    }
    for record in records:
        if not isinstance(record, dict) or latest.get(str(record.get("id")), record) is not record:
            continue
        listed = next((record[key] for key in _LISTS if isinstance(record.get(key), list)), None)
        nodes = record.get("mapping")
        for one in listed or (nodes.values() if nodes else [record]):
            keys = ("payload",) if one.get("type") == "response_item" else _WITHIN
            yield next((one[key] for key in keys if isinstance(one.get(key), dict)), one)


def _of(said: Mapping[str, Any]) -> Iterator[Recorded]:
    kind, content = str(said.get("type", "")), said.get("content")
    yield from _of_open_code(said.get("parts") or [])
    yield from _of_open_hands(said)
    yield from _of_chat_gpt(said)
    yield from _of_share_gpt(said)
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "tool_use" | "toolCall", "name": name}:
                yield _call(name, block.get("input", block.get("arguments")))
            case {"type": "tool_result", "content": held}:
                yield _result(held)
            case {"type": "toolRequest", "toolCall": {"value": {"name": name, "arguments": given}}}:
                yield _call(name, given)
            case {"type": "toolResponse", "toolResult": {"value": list(held)}}:
                yield _result([one for one in held if "assistant" in one["annotations"]["audience"]])
            case {"type": "tool-call", "toolName": name, "input": given}:
                yield _call(name, given)
            case {"type": "tool-result", "output": {"value": held}}:
                yield _result(held)
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    is_told = any(one.get("type") == "tool-result" for one in blocks)
    if (said.get("role") in ("tool", "toolResult") and not is_told) or kind == "tool":
        yield _result(content)
    for call in said.get("tool_calls") or []:
        function = call.get("function", call)
        yield _call(function["name"], function.get("arguments", function.get("args")))
    for call in said.get("toolCalls") or []:
        yield _call(call["name"], call.get("args"))
        yield _result([entry["functionResponse"]["response"] for entry in call.get("result") or []])
    if kind.endswith("_call"):
        yield _call(said.get("name", ""), said.get("arguments", said.get("input")))
    elif kind.endswith("_output"):
        yield _result(said.get("output"))


def _of_open_code(parts: list[Any]) -> Iterator[Recorded]:
    """Calls with their results; the AI SDK has them in parts too."""
    for part in parts:
        match part:
            case {"type": "tool", "tool": name, "state": state}:
                yield _call(name, state["input"])
                yield _result(state.get("output", state.get("error")))
            case {"type": str(kind), "input": given} if kind.startswith("tool-"):
                yield _call(kind.removeprefix("tool-"), given)
                yield _result(part.get("output"))


def _of_open_hands(event: Mapping[str, Any]) -> Iterator[Recorded]:
    match event:
        case {"action": str(done), "args": given} if done not in (*_SPOKEN, *_SILENT):
            name = event.get("tool_call_metadata", {}).get("function_name", done)
            yield _call(name, {key: value for key, value in given.items() if key != "thought"})
        case {"observation": str(seen), "content": content} if seen not in _SILENT:
            yield _result(content)
        case {"kind": "ActionEvent", "tool_name": name, "tool_call": {"arguments": given}}:
            yield _call(name, given)
        case {"kind": "ObservationEvent", "observation": {"content": content}}:
            yield _result(content)


def _of_chat_gpt(said: Mapping[str, Any]) -> Iterator[Recorded]:
    match said:
        case {"author": {"role": "assistant"}, "recipient": name, "content": {"text": text}} if name != "all":
            yield _call(name, text)
        case {"author": {"role": "tool"}, "content": {"text": text}}:
            yield _result(text)


def _of_share_gpt(turn: Mapping[str, Any]) -> Iterator[Recorded]:
    match turn:
        case {"from": "function_call", "value": value}:
            call = json.loads(value)
            yield _call(call["name"], call["arguments"])
        case {"from": "observation", "value": value}:
            yield _result(value)


def _of_row(row: Mapping[str, Any]) -> Iterator[Recorded]:
    """The calls or the result in a row that was written by `write_parquet`."""
    for part in json.loads(row["parts"] or "[]"):
        if part["part_type"] == "tool" and row["role"] == "assistant":
            yield _call(part["tool_name"], part.get("tool_input"))
    if row["role"] == "tool":
        yield _result(row["content"])


def _call(name: str, arguments: object) -> Recorded:
    return Recorded("call", name, tuple(_texts(_decoded(arguments))))


def _result(content: object) -> Recorded:
    return Recorded("result", "", tuple(_texts(_decoded(content))))


def _decoded(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    except ValueError:
        return value


def _texts(value: object) -> Iterator[str]:
    match value:
        case str() if value.strip():
            yield value
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            yield from _texts(text)
        case dict() if value.get("type") not in _PICTURES:
            for one in value.values():
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)
