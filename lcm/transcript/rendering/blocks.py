"""Blocks of agent messages, rebuilt from their rows.

Source: the assembler of lossless-claw 0.6.3.
"""

from collections.abc import Mapping
from typing import Any

from lcm.javascript import parse, stringify
from lcm.transcript.rendering.stored_parts import StoredPart
from lcm.transcript.rendering.stored_text import TOOL_TYPES

CALL_TYPES = frozenset({"toolCall", "toolUse", "tool_use", "tool-use", "functionCall", "function_call"})
_RESULT_TYPES = frozenset({"function_call_output", "toolResult", "tool_result"})

Block = dict[str, Any]


def block_of(part: StoredPart, part_id: str) -> Any:
    """Rebuild the block of a row: as recorded, except calls and results of tools, which come from the columns.

    Args:
        part: the row.
        part_id: names a tool call that has no id of its own.
    """
    raw = part.metadata.get("raw")
    if isinstance(raw, dict | list):
        restored = _openai_reasoning(raw) if isinstance(raw, dict) else None
        if restored is not None:
            return restored
        if not isinstance(raw, dict) or raw.get("type") not in TOOL_TYPES:
            return raw
    held = raw if isinstance(raw, dict) else {}
    named = part.metadata.get("rawType")
    if part.part_type == "reasoning":
        return {"type": "thinking" if named == "thinking" else "reasoning"} | _reasoning_words(part, named)
    if part.part_type == "tool":
        is_result = part.metadata.get("originalRole") == "toolResult" or named == "function_call_output"
        return _result_block(part, named, held) if is_result else _call_block(part, named, held, part_id)
    if part.part_type == "text" or part.text:
        return {"type": "text", "text": part.text or ""}
    return {"type": "text", "text": stringify(dict(part.metadata))}


def needs_no_row(block: object) -> bool:
    """Say whether storing changes nothing about a block, so that no row need be made of it: true of plain text."""
    return isinstance(block, dict) and block.get("type") == "text" and "rawType" not in block


def _openai_reasoning(raw: Mapping[str, Any]) -> Block | None:
    """The reasoning item of OpenAI that OpenClaw keeps as the signature of a thinking block."""
    signature = raw.get("thinkingSignature")
    if raw.get("type") != "thinking" or not isinstance(signature, str) or not signature.startswith("{"):
        return None
    try:
        item = parse(signature)
    except ValueError:
        return None
    is_reasoning = isinstance(item, dict) and item.get("type") == "reasoning" and isinstance(item.get("id"), str)
    return item if is_reasoning else None


def _reasoning_words(part: StoredPart, named: object) -> Block:
    return {"thinking" if named == "thinking" else "text": part.text} if part.text else {}


def _call_block(part: StoredPart, named: object, raw: Mapping[str, Any], part_id: str) -> Block:
    kind = named if named in CALL_TYPES else "toolCall"
    call_id = part.tool_call_id or _text(raw, "id") or _text(raw, "call_id")
    name = part.tool_name or _text(raw, "name")
    arguments = _value(part.tool_input)
    if arguments is None:
        arguments = raw.get("arguments", raw.get("input"))
    block: Block = {"type": kind}
    if kind == "function_call":
        block |= {"call_id": call_id} if call_id else {}
    else:
        block["id"] = call_id or f"toolu_lcm_{part_id}"
    block |= {"name": name} if name else {}
    if arguments is not None:
        block["arguments" if kind in ("function_call", "functionCall", "toolCall") else "input"] = arguments
    return block


def _result_block(part: StoredPart, named: object, raw: Mapping[str, Any]) -> Block:
    if isinstance(raw.get("text"), str) and "output" not in raw and "content" not in raw:
        return {"type": "text", "text": raw["text"]}
    kind = named if named in _RESULT_TYPES else "tool_result"
    block: Block = {"type": kind} | ({"name": part.tool_name} if part.tool_name else {})
    output = _value(part.tool_output)
    if output is not None:
        block["output"] = output
    elif part.text is not None:
        block["output"] = part.text
    elif "output" in raw:
        block["output"] = raw["output"]
    elif "content" in raw:
        block["content"] = raw["content"]
    else:
        block["output"] = ""
    error_key = next((key for key in ("is_error", "isError") if isinstance(raw.get(key), bool)), None)
    block |= {error_key: raw[error_key]} if error_key else {}
    if part.tool_call_id:
        block["call_id" if kind == "function_call_output" else "tool_use_id"] = part.tool_call_id
    return block


def _value(stored: str | None) -> Any:
    """Stored JSON text as the value, or as the text that it is; None where nothing is stored."""
    if not stored:
        return None
    try:
        return parse(stored)
    except ValueError:
        return stored


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""
