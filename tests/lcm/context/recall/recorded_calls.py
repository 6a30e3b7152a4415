"""Calls of tools and their results, counted in recorded files by `json.loads` alone: no reader of ours has a say."""

import gzip
import json
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_LISTS = ("messages", "history", "traj")
_PICTURES = ("image", "image_url", "input_image")


class Recorded(NamedTuple):
    """A call or a result: the tool's name, where it stands there, and every text in its arguments or result."""

    kind: str
    name: str
    texts: tuple[str, ...]


def recorded(path: Path, put_aside: Container[int] = ()) -> list[Recorded]:
    """Every call and every result in a file, but of lines that were put aside."""
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
        one["id"]: one for one in records if isinstance(one, dict) and one.get("type") == "gemini" and "id" in one
    }
    for record in records:
        if not isinstance(record, dict) or latest.get(record.get("id"), record) is not record:
            continue
        listed = next((record[key] for key in _LISTS if isinstance(record.get(key), list)), None)
        for one in listed if listed is not None else [record]:
            held = one.get("payload" if one.get("type") == "response_item" else "message")
            yield held if isinstance(held, dict) else one


def _of(said: Mapping[str, Any]) -> Iterator[Recorded]:
    kind, content = str(said.get("type", "")), said.get("content")
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "tool_use" | "toolCall", "name": name}:
                yield _call(name, block.get("input", block.get("arguments")))
            case {"type": "tool_result", "content": held}:
                yield _result(held)
    if said.get("role") in ("tool", "toolResult"):
        yield _result(content)
    for call in said.get("tool_calls") or []:
        yield _call(call["function"]["name"], call["function"].get("arguments"))
    for call in said.get("toolCalls") or []:
        yield _call(call["name"], call.get("args"))
        yield _result([entry["functionResponse"]["response"] for entry in call.get("result") or []])
    if kind.endswith("_call"):
        yield _call(said.get("name", ""), said.get("arguments", said.get("input")))
    elif kind.endswith("_output"):
        yield _result(said.get("output"))


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
