"""Messages as an agent's runtime takes them: user, assistant or toolResult.

Source: the assembler of lossless-claw 0.6.3.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lcm.javascript import stringify
from lcm.records.conversation import Message
from lcm.transcript.rendering.agent_form import AgentMessage, agent_messages
from lcm.transcript.rendering.blocks import CALL_TYPES
from lcm.transcript.rendering.storage_shape import blocks_of, only_text
from lcm.transcript.rendering.stored_parts import StoredPart, stored_parts

RuntimeMessage = dict[str, Any]

_SPOKEN = {"user": "user", "system": "user", "assistant": "assistant", "tool": "toolResult", "toolResult": "toolResult"}


def runtime_messages(message: Message) -> list[RuntimeMessage]:
    """Give what a model is sent of a message."""
    if (plain := _plain(message)) is not None:
        return [plain]
    return [_runtime_message(native, message.message_id) for native in agent_messages(message)]


def with_usage(message: RuntimeMessage, tokens: int) -> RuntimeMessage:
    """An assistant's message with the bill that a host wants on it: nothing was spent, so many tokens are shown."""
    if message["role"] != "assistant":
        return message
    spent = {"input": 0, "output": tokens, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens}
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    return {**message, "usage": {**spent, "cost": cost}}


def costed_text(message: Mapping[str, Any]) -> str:
    """The text that the tokens of a message are counted from: its words, or its blocks as JSON."""
    content = message["content"]
    if isinstance(content, str):
        return content
    if len(content) == 1 and isinstance(content[0], dict) and [*content[0]] == ["type", "text"]:  # most, sooner
        kind, text = content[0].values()
        if kind == "text" and isinstance(text, str):
            return f'[{{"type":"text","text":{stringify(text)}}}]'
    return stringify(content)


def readable_text(message: RuntimeMessage) -> str:
    """What the message says: words as they are, calls and other blocks as JSON."""
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(filter(None, map(_readable, content)))


def calls_of(message: RuntimeMessage) -> list[tuple[str, str]]:
    """The id and the name of each call that the message makes, in order; a call without an id is none."""
    if message["role"] != "assistant":
        return []
    calls = (block for block in blocks_in(message) if isinstance(block, dict) and block.get("type") in CALL_TYPES)
    named = ((call_id_of(block), block.get("name")) for block in calls)
    return [(call_id, name if isinstance(name, str) else "") for call_id, name in named if call_id]


def call_id_of(block: dict[str, Any]) -> str:
    return _first_text(block.get(key) for key in ("id", "call_id"))


def result_id_of(message: RuntimeMessage) -> str:
    """The id of the call that the message answers; empty where it answers none."""
    return (
        _first_text(message.get(key) for key in ("toolCallId", "toolUseId")) if message["role"] == "toolResult" else ""
    )


def blocks_in(message: RuntimeMessage) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _plain(message: Message) -> RuntimeMessage | None:
    """The same of a message that is one text of a user or an assistant, as most are, sooner; None of any other."""
    if len(message.parts) != 1 or message.files or message.envelope.get("slots") != {"content": "value"}:
        return None
    (part,), native = message.parts, message.envelope["native"]
    if part.text is None or part.part_type != "text" or part.metadata != {"slot": "content"}:
        return None
    if native == {"role": "user", "content": None}:
        return {"role": "user", "content": part.text}
    if native == {"role": "assistant", "content": None}:
        return {"role": "assistant", "content": [{"type": "text", "text": part.text}]}
    return None


def _runtime_message(native: AgentMessage, message_id: str) -> RuntimeMessage:
    role = _SPOKEN.get(native["role"], "assistant")
    blocks = blocks_of(native, message_id)
    if role == "user":
        alone = only_text(blocks)
        return {"role": "user", "content": "" if not blocks else blocks if alone is None else alone}
    parts = stored_parts(native) if role == "toolResult" else []
    call_id = _call_id(parts)
    if not call_id:
        return {"role": "assistant", "content": blocks}
    error = next((part.metadata["isError"] for part in parts if "isError" in part.metadata), None)
    message = {"role": "toolResult", "content": blocks, "toolCallId": call_id, "toolName": _tool_name(parts)}
    return message if error is None else {**message, "isError": error}


def _call_id(parts: Sequence[StoredPart]) -> str:
    columns = (part.tool_call_id for part in parts)
    told = (part.metadata.get("toolCallId") for part in parts)
    raw = (block.get(key) for block in _raw(parts) for key in ("toolCallId", "tool_call_id"))
    return _first_text([*columns, *told, *raw])


def _tool_name(parts: Sequence[StoredPart]) -> str:
    columns = (part.tool_name for part in parts)
    told = (part.metadata.get("toolName") for part in parts)
    raw = (block.get(key) for block in _raw(parts) for key in ("name", "toolName"))
    return _first_text([*columns, *told, *raw]) or "unknown"


def _raw(parts: Sequence[StoredPart]) -> list[dict[str, Any]]:
    return [raw for part in parts if isinstance(raw := part.metadata.get("raw"), dict)]


def _readable(block: Any) -> str:
    if isinstance(block, dict):
        for kind, key in (("text", "text"), ("thinking", "thinking"), ("reasoning", "text")):
            if block.get("type") == kind and isinstance(block.get(key), str):
                return str(block[key])
    return stringify(block)


def _first_text(values: Iterable[Any]) -> str:
    return next((value for value in values if isinstance(value, str) and value), "")
