"""Messages of Vercel's AI SDK (`UIMessage`, versions 4 to 6): what is said stands in `parts`, not in `content`.

A part is text, reasoning, a file, a tool's call with its result (`tool-<name>`, `dynamic-tool`, in version 4
`tool-invocation`), or of the page alone (`step-start`, `source-url`, `data-<name>`). What a model is sent
(`ModelMessage`) has its blocks in `content`, `tool-call` and `tool-result` among them, as other chat has.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lcm.records.conversation import Part, PartType
from lcm.transcript.fields import json_in, object_in, text_in
from lcm.transcript.parts import DecomposedMessage, extended
from lcm.transcript.plain_text import plain_text

_SLOT = "parts"
_TYPES: dict[str, PartType] = {"text": "text", "reasoning": "reasoning", "file": "file", "step-start": "step_start"}
_TOOL = "tool-"
_DYNAMIC_TOOL = "dynamic-tool"
_INVOCATION = "toolInvocation"
_CALL_KEYS, _RESULT_KEYS = ("input", "args"), ("output", "result", "errorText")


def is_ui_message(native: Mapping[str, Any]) -> bool:
    """Say whether a message has parts of the AI SDK, each of which names its type."""
    parts = native.get(_SLOT)
    return bool(parts) and isinstance(parts, list) and all(isinstance(p, dict) and "type" in p for p in parts)


def with_ui_parts(native: Mapping[str, Any], said: DecomposedMessage) -> DecomposedMessage:
    """The message with its parts; where it has `content` too, as in version 4, that has the words already."""
    parts = [_part(block) for block in native[_SLOT]]
    words = (word for block in native[_SLOT] for word in _words(block, is_told=bool(said.content)))
    return extended(said, parts, words)


def _part(block: Mapping[str, Any]) -> Part:
    metadata = {"slot": _SLOT, "raw": block}
    call = _call(block)
    if call is None:
        part_type = _TYPES.get(str(block["type"]), "agent")
        return Part(part_type, text_in(block, "text", "reasoning"), metadata=metadata)
    return Part(
        "tool",
        tool_call_id=text_in(call, "toolCallId"),
        tool_name=text_in(call, "toolName") or str(block["type"]).removeprefix(_TOOL),
        tool_input=json_in(call, *_CALL_KEYS),
        tool_output=json_in(call, *_RESULT_KEYS),
        metadata=metadata,
    )


def _call(block: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What says of a tool's call what was asked and answered; None for another part."""
    if isinstance(block.get(_INVOCATION), dict):
        return object_in(block, _INVOCATION)
    return block if str(block["type"]).startswith((_TOOL, _DYNAMIC_TOOL)) else None


def _words(block: Mapping[str, Any], is_told: bool) -> Iterator[str]:
    """The words of a text, and of what a tool gave back."""
    if (call := _call(block)) is not None:
        result = next((call[key] for key in _RESULT_KEYS if call.get(key) is not None), None)
        yield plain_text({"content": result})
    elif block["type"] == "text" and not is_told:
        yield text_in(block, "text") or ""
