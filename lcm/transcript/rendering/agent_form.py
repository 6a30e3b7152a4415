"""Recorded messages of every format as agent messages: user, assistant, toolResult, in the notation of OpenClaw.

What stands in OpenClaw's notation stays as it is. Of other formats, calls become `toolCall` blocks of the assistant,
and each result becomes a message of its own, behind its call, so that what pairs calls with results sees them all. A
call or a result without an id cannot be paired: it becomes text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lcm.javascript import parse, stringify
from lcm.records.conversation import Message, Part
from lcm.transcript.large_files import compacted
from lcm.transcript.message_tokens import images_in
from lcm.transcript.parts import RESULT_TYPES, block_type, is_translated, plain_text, read_whole

AgentMessage = dict[str, Any]

_FOREIGN_ROLES = frozenset({"function", "developer", "model", "gemini"})
_OWN_TEXT = frozenset({"text", "thinking", "reasoning"})


def agent_messages(message: Message) -> list[AgentMessage]:
    """Give the message as one or several agent messages, none of which the caller may change.

    What is too large for a context is named by a reference in its place.
    """
    message = compacted(message)
    native = read_whole(message) if "native" in message.envelope and not is_translated(message) else None
    if native is not None and _is_agent_message(native):
        return [native]
    if not message.parts:
        return [{"role": "toolResult" if message.role == "tool" else message.role, "content": message.content}]
    return list(_translated(message, native or {}))


def turn_of(message: Message) -> str:
    """Name the turn that the message is a piece of, where its format records a turn in pieces; empty otherwise."""
    native = message.envelope.get("native", {})
    named = native.get("type")
    if message.role != "assistant" or not isinstance(named, str):
        return ""
    if message.envelope.get("within") == "message":  # Claude Code: pieces of a turn share the id of the reply
        return str(native.get("id") or "")
    is_item = named in ("message", "agent_message", "reasoning") or named.endswith("_call")
    return "codex" if is_item else ""  # a user's message or a result always stands between two turns


def _is_agent_message(native: Mapping[str, Any]) -> bool:
    """Say whether it is in OpenClaw's notation, or near enough to be read as such."""
    role, content = native.get("role"), native.get("content")
    if not isinstance(role, str) or native.get("tool_calls") or "parts" in native or role in _FOREIGN_ROLES:
        return False
    if role == "tool":
        return isinstance(native.get("tool_call_id"), str) and "name" not in native
    blocks = content if isinstance(content, list) else []
    has_result = role in ("user", "assistant") and any(block_type(block) in RESULT_TYPES for block in blocks)
    return not has_result and not any(block_type(block) in ("input_text", "output_text") for block in blocks)


def _translated(message: Message, native: Mapping[str, Any]) -> Iterator[AgentMessage]:
    """The message from its parts: what it says and calls, and the results that it holds."""
    blocks: list[Any] = []
    results: list[AgentMessage] = []
    for part in message.parts:
        if part.part_type == "tool":
            is_result = _is_result(message, part)
            if not is_result:
                blocks.append(_call(part))
            if is_result or part.tool_output is not None:
                results.append(_result(part, native))
        elif message.role == "tool":
            results.append(_result(part, native))
        else:
            blocks += _blocks(part)
    role = "assistant" if message.role == "tool" else message.role
    said = {"role": role, "content": blocks} if blocks or not results else None
    if said is not None and role == "assistant":
        yield said
    yield from _joined(results)
    if said is not None and role != "assistant":
        yield said


def _is_result(message: Message, part: Part) -> bool:
    """Say whether a tool's part is a result alone; a part may hold a call and its result."""
    raw = part.metadata.get("raw")
    return message.role != "assistant" or block_type(raw) in RESULT_TYPES


def _blocks(part: Part) -> Iterator[Any]:
    raw = part.metadata.get("raw")
    if part.part_type == "text":
        yield {"type": "text", "text": part.text or ""}
    elif part.part_type == "reasoning":
        if isinstance(raw, dict) and block_type(raw) in _OWN_TEXT:
            yield raw
        elif part.text:
            yield {"type": "thinking", "thinking": part.text}
    elif raw is not None:
        yield raw
    elif part.text:
        yield {"type": "text", "text": part.text}


def _call(part: Part) -> dict[str, Any]:
    if not part.tool_call_id:
        return {"type": "text", "text": f"[call of {part.tool_name or 'a tool'}: {part.tool_input or ''}]"}
    name = {"name": part.tool_name} if part.tool_name else {}
    return {"type": "toolCall", "id": part.tool_call_id, **name, "arguments": _arguments(part)}


def _arguments(part: Part) -> Any:
    try:
        value = parse(part.tool_input or "{}")
    except ValueError:
        return part.tool_input
    return value


def _result(part: Part, native: Mapping[str, Any]) -> AgentMessage:
    raw = part.metadata.get("raw")
    held = raw if isinstance(raw, dict) else {}
    error = next((holder[key] for holder in (held, native) for key in ("is_error", "isError") if key in holder), None)
    return {
        "role": "toolResult",
        **({"toolCallId": part.tool_call_id} if part.tool_call_id else {}),
        **({"toolName": part.tool_name} if part.tool_name else {}),
        "content": _result_blocks(part, held),
        **({"isError": error} if isinstance(error, bool) else {}),
    }


def _result_blocks(part: Part, held: Mapping[str, Any]) -> list[Any]:
    content = held.get("content")
    if block_type(held) in RESULT_TYPES and isinstance(content, list) and content:
        return [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    if part.part_type != "tool" and held:
        return list(_blocks(part))
    outputs = _outputs(part)
    pictures = [output for output in outputs if images_in(output)]
    if pictures and len(pictures) == len(outputs):
        return pictures
    if pictures:
        others = [output for output in outputs if not images_in(output)]
        part = replace(part, tool_output=stringify(others))
    return [{"type": "text", "text": _result_words(part, held)}, *pictures]


def _outputs(part: Part) -> list[Any]:
    """What a tool gave apart from words, entry by entry."""
    if part.text is not None or part.tool_output is None:
        return []
    try:
        output = parse(part.tool_output)
    except ValueError:
        return [part.tool_output]
    return output if isinstance(output, list) else [output]


def _result_words(part: Part, held: Mapping[str, Any]) -> str:
    if isinstance(held.get("content"), str):
        return str(held["content"])
    responses = map(_response, _outputs(part))
    words = "\n".join(filter(None, (plain_text({"content": response}) for response in responses)))
    return words or part.text or part.tool_output or ""


def _response(entry: Any) -> Any:
    """What a `functionResponse` of Gemini holds; anything else as it is."""
    response = entry.get("functionResponse") if isinstance(entry, dict) else None
    return response.get("response") if isinstance(response, dict) else entry


def _joined(results: list[AgentMessage]) -> Iterator[AgentMessage]:
    """Join the blocks of a tool's message that stand behind one another under one id."""
    waiting: AgentMessage | None = None
    for result in results:
        if waiting is not None and waiting.get("toolCallId") == result.get("toolCallId"):
            waiting = {**waiting, "content": [*waiting["content"], *result["content"]]}
        else:
            if waiting is not None:
                yield waiting
            waiting = result
    if waiting is not None:
        yield waiting
