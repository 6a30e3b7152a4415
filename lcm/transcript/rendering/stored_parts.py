"""The blocks of an agent message as rows of the original's store.

Source: the message parts of lossless-claw 0.6.3.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lcm.javascript import stringify, trim
from lcm.records.conversation import PartType
from lcm.transcript.rendering.stored_text import TOOL_TYPES, stored_text

_PART_TYPES: dict[str, PartType] = {
    "text": "text",
    "thinking": "reasoning", "reasoning": "reasoning",
    **dict.fromkeys([*TOOL_TYPES, "tool"], "tool"),
    "patch": "patch",
    "file": "file", "image": "file",
    "subtask": "subtask", "compaction": "compaction",
    "step_start": "step_start", "step-start": "step_start",
    "step_finish": "step_finish", "step-finish": "step_finish",
    "snapshot": "snapshot", "retry": "retry", "agent": "agent",
}  # fmt: skip

_CALL_ID_KEYS = ("toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "call_id")
_EXTERNAL_KEYS = ("externalizedFileId", "originalByteSize", "toolOutputExternalized", "externalizationReason")

_PLAIN = {"type", "text"}


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A block as columns; `metadata` holds who said it and the block itself."""

    part_type: PartType
    text: str | None
    metadata: Mapping[str, Any]
    tool_call_id: str | None = None
    tool_name: str | None = None
    tool_input: str | None = None
    """JSON text."""
    tool_output: str | None = None
    """JSON text."""


def stored_parts(native: Mapping[str, Any]) -> list[StoredPart]:
    """Split an agent message into its rows."""
    said_by = {"originalRole": native["role"]}
    if "content" not in native:
        if "command" in native and "output" in native:
            source = {"source": "bash-exec", **_present({"command": _text(native.get("command"))})}
            return [StoredPart("text", stored_text(native), said_by | source)]
        unknown = {"source": "unknown-message-shape", "raw": native}
        return [StoredPart("agent", stored_text(native) or None, said_by | unknown)]
    content = native["content"]
    message_level = _present(
        {
            "toolCallId": _first_text(native, (*_CALL_ID_KEYS, "id")),
            "toolName": _first_text(native, ("toolName", "tool_name")),
            "isError": native["isError"] if isinstance(native.get("isError"), bool) else native.get("is_error"),
        }
    )
    if isinstance(content, str):
        return [StoredPart("text", content, said_by | message_level)]
    if not isinstance(content, list):
        odd = {"source": "non-array-content", "raw": content}
        return [StoredPart("agent", stored_text(native) or None, said_by | odd)]
    return [_block_part(said_by | message_level, block) for block in content]


def _block_part(message_level: dict[str, Any], block: object) -> StoredPart:
    if not isinstance(block, dict):
        return StoredPart(
            "agent",
            None,
            {**message_level, "rawType": "agent", "raw": block},
            message_level.get("toolCallId"),
            message_level.get("toolName"),
        )
    if block.keys() == _PLAIN and block["type"] == "text" and isinstance(block["text"], str):  # most blocks, sooner
        call_id, name = message_level.get("toolCallId"), message_level.get("toolName")
        return StoredPart("text", block["text"], {**message_level, "rawType": "text", "raw": block}, call_id, name)
    named = _first_text(block, ("rawType", "type")) or "agent"
    part_type = _PART_TYPES.get(named, "agent")
    is_renamed = "rawType" in block and block.get("type") != named
    raw = {**block, "type": named} if is_renamed else block
    id_keys = (*_CALL_ID_KEYS, "id") if part_type == "tool" else _CALL_ID_KEYS
    return StoredPart(
        part_type,
        _block_text(block),
        {**message_level, **_present({key: block.get(key) for key in _EXTERNAL_KEYS}), "rawType": named, "raw": raw},
        tool_call_id=_first_text(block, id_keys) or message_level.get("toolCallId"),
        tool_name=_first_text(block, ("name", "toolName", "tool_name")) or message_level.get("toolName"),
        tool_input=_json(block, ("input", "arguments", "toolInput"), "tool_input"),
        tool_output=_json(block, ("output", "toolOutput"), "tool_output"),
    )


def _block_text(block: Mapping[str, Any]) -> str | None:
    text = _first_text(block, ("text", "thinking"))
    if text is None and block.get("type") in ("reasoning", "thinking"):
        return "\n".join(dict.fromkeys(_texts(block.get("summary")))) or None
    return text


def _texts(summary: object) -> Iterator[str]:
    for entry in summary if isinstance(summary, list) else [summary]:
        text = entry.get("text") if isinstance(entry, dict) else entry
        if isinstance(text, str) and trim(text):
            yield trim(text)


def _json(block: Mapping[str, Any], keys: Iterable[str], json_key: str) -> str | None:
    """The first value that is there as JSON text; under `json_key` it is JSON text already."""
    key = next((key for key in keys if key in block), None)
    return _first_text(block, (json_key,)) if key is None else stringify(block[key])


def _first_text(holder: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    for key in keys:
        if isinstance(value := holder.get(key), str):
            return value
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
