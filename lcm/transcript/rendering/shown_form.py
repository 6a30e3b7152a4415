"""How stored messages and summaries are shown: as rows of the original's store, as an agent's messages, and as text.

Source: the store and the assembler of lossless-claw 0.6.3.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr
from zoneinfo import ZoneInfo

from lcm.clock import EPOCH
from lcm.encoding import well_formed
from lcm.javascript import parse, stringify, trim
from lcm.records.conversation import Message, PartType
from lcm.records.summary import Summary
from lcm.transcript.parts import CALL_TYPES, MEDIA_TYPES, RESULT_TYPES, block_type
from lcm.transcript.rendering.agent_form import AgentMessage, agent_messages

TOOL_TYPES = CALL_TYPES | RESULT_TYPES

_WORD_KEYS = ("text", "transcript", "transcription", "message", "summary")
_LIST_KEYS = ("segments", "utterances", "paragraphs", "alternatives", "words", "items", "results")
_NESTING_KEYS = ("content", "output", "result", "payload", "data", "value")
_EXTERNALIZED_KEYS = ("output", "content", "result")
_DOCUMENT_TYPES = frozenset({"document", "file", "input_file"})

_MAX_DEPTH = 6
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

AGENT_CALL_TYPES = frozenset({"toolCall", "toolUse", "tool_use", "tool-use", "functionCall", "function_call"})
_RESULT_TYPES = frozenset({"function_call_output", "toolResult", "tool_result"})

Block = dict[str, Any]
RuntimeMessage = dict[str, Any]

_SPOKEN = {"user": "user", "system": "user", "assistant": "assistant", "tool": "toolResult", "toolResult": "toolResult"}


def stored_text(native: Mapping[str, Any]) -> str:
    """Give the words of an agent message: of its `content`, or of a shell command with its `output`."""
    if "content" not in native:
        return f"$ {native.get('command', '')}\n{native['output']}" if "output" in native else ""
    content = native["content"]
    if isinstance(content, str):
        return content
    words = _words(content, 0)
    if words is not None:
        return words
    told = _without_media(content)
    if told is None or (isinstance(told, list) and all(block_type(block) in TOOL_TYPES for block in told)):
        return ""
    return stringify(told)


def _words(value: object, depth: int) -> str | None:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        return _words_in_json(value, depth) or value
    if isinstance(value, list):
        found = (_words(element, depth + 1) for element in value)
        return "\n".join(words for words in found if words and trim(words)) or None
    return _words_of_block(value, depth) if isinstance(value, dict) else None


def _words_in_json(text: str, depth: int) -> str | None:
    trimmed = trim(text)
    if trimmed[:1] + trimmed[-1:] not in ("{}", "[]"):
        return None
    try:
        value = parse(trimmed)
    except ValueError:
        return None
    return _words(value, depth + 1)


def _words_of_block(block: dict[str, Any], depth: int) -> str | None:
    named = block_type(block)
    if named in TOOL_TYPES:
        is_external = block.get("toolOutputExternalized") is True
        return _first_words(block, _EXTERNALIZED_KEYS, depth) if is_external else None
    for key in _WORD_KEYS:
        if isinstance(words := block.get(key), str) and trim(words):
            return words
    listed = next((block[key] for key in _LIST_KEYS if isinstance(block.get(key), list) and block[key]), None)
    if listed is not None:
        return _words(listed, depth + 1)
    if named in MEDIA_TYPES:
        return _first_words(block, ("content",), depth) if named in _DOCUMENT_TYPES else None
    return _first_words(block, _NESTING_KEYS, depth)


def _first_words(block: dict[str, Any], keys: tuple[str, ...], depth: int) -> str | None:
    found = (_words(block.get(key), depth + 1) for key in keys)
    return next((words for words in found if words and trim(words)), None)


def _without_media(value: Any) -> Any:
    """The value without the blocks that hold media, at any depth."""
    if isinstance(value, list):
        return [_without_media(element) for element in value if block_type(element) not in MEDIA_TYPES]
    if isinstance(value, dict):
        kept = {key: held for key, held in value.items() if block_type(held) not in MEDIA_TYPES}
        return {key: _without_media(held) for key, held in kept.items()}
    return value


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
    kind = named if named in AGENT_CALL_TYPES else "toolCall"
    call_id = part.tool_call_id or _held_text(raw, "id") or _held_text(raw, "call_id")
    name = part.tool_name or _held_text(raw, "name")
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


def _held_text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def stored_content(message: Message) -> str:
    """Give the words of the message: what compaction reads and recall searches."""
    if message.files or "native" not in message.envelope:
        return message.content
    said = [stored_text(native) for native in agent_messages(message)]
    return well_formed(said[0] if len(said) == 1 else "\n".join(text for text in said if trim(text)))


def rendered(message: Message) -> str:
    """Give the text whose tokens the message counts: what a context would show of it."""
    return "\n".join(_rendered(native, message.message_id) for native in agent_messages(message))


def _rendered(native: AgentMessage, message_id: str) -> str:
    if "content" not in native:
        return stored_text(native)
    blocks = blocks_of(native, message_id)
    if not blocks:
        return stored_text(native)
    if native["role"] in ("user", "system") and (alone := only_text(blocks)) is not None:
        return alone
    return stringify(blocks)


def blocks_of(native: AgentMessage, message_id: str) -> list[Any]:
    """The blocks of an agent message, once its rows have been stored and read again."""
    content = native.get("content")
    if isinstance(content, list) and all(map(needs_no_row, content)):
        return content
    if isinstance(content, str):  # as its one row would be read again, sooner
        return [{"type": "text", "text": content}]
    return [block_of(part, f"{message_id}_{place}") for place, part in enumerate(stored_parts(native))]


def only_text(blocks: list[Any]) -> str | None:
    """The text of a message that is one block of text; None for any other."""
    block = blocks[0] if len(blocks) == 1 else None
    is_text = isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    return block["text"] if is_text and isinstance(block, dict) else None


def summary_text(summary: Summary, zone: ZoneInfo, *, is_untrusted: bool = False) -> str:
    """Give the summary, the ids of the summaries that it was condensed from, and when its sources were said.

    What has no time, which the store dates at the epoch, is told none. `is_untrusted`: a model is told not to obey it.
    """
    return "\n".join(_lines(summary, zone, is_untrusted))


def _lines(summary: Summary, zone: ZoneInfo, is_untrusted: bool) -> Iterator[str]:
    attributes = {
        "id": summary.summary_id,
        "kind": summary.kind,
        "depth": str(summary.depth),
        "descendant_count": str(summary.descendant_count),
        "trust": "untrusted" if is_untrusted else None,
        "earliest_at": _local(summary.earliest_at, zone),
        "latest_at": _local(summary.latest_at, zone),
    }
    told = " ".join(f"{name}={_quoted(value)}" for name, value in attributes.items() if value is not None)
    yield f"<summary {told}>"
    if summary.kind == "condensed" and summary.source_ids:
        yield "  <parents>"
        for source_id in summary.source_ids:
            yield f"    <summary_ref id={_quoted(source_id)} />"
        yield "  </parents>"
    yield "  <content>"
    yield escape(summary.content)
    yield "  </content>"
    yield "</summary>"


def _quoted(value: str) -> str:
    return quoteattr(value, {'"': "&quot;"})


def _local(instant: datetime | None, zone: ZoneInfo) -> str | None:
    return None if instant is None or instant == EPOCH else instant.astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")


def runtime_messages(message: Message) -> list[RuntimeMessage]:
    """Give what a model is sent of a message."""
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
    return content if isinstance(content, str) else stringify(content)


def readable_text(message: RuntimeMessage) -> str:
    """What the message says: words as they are, calls and other blocks as JSON."""
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(filter(None, map(_readable, content)))


def calls_of(message: RuntimeMessage) -> list[tuple[str, str]]:
    """The id and the name of each call that the message makes, in order; a call without an id is none."""
    if message["role"] != "assistant":
        return []
    calls = (block for block in blocks_in(message) if isinstance(block, dict) and block.get("type") in AGENT_CALL_TYPES)
    named = ((call_id_of(block), block.get("name")) for block in calls)
    return [(call_id, name if isinstance(name, str) else "") for call_id, name in named if call_id]


def call_id_of(block: dict[str, Any]) -> str:
    return _first_said(block.get(key) for key in ("id", "call_id"))


def result_id_of(message: RuntimeMessage) -> str:
    """The id of the call that the message answers; empty where it answers none."""
    return (
        _first_said(message.get(key) for key in ("toolCallId", "toolUseId")) if message["role"] == "toolResult" else ""
    )


def blocks_in(message: RuntimeMessage) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


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
    return _first_said([*columns, *told, *raw])


def _tool_name(parts: Sequence[StoredPart]) -> str:
    columns = (part.tool_name for part in parts)
    told = (part.metadata.get("toolName") for part in parts)
    raw = (block.get(key) for block in _raw(parts) for key in ("name", "toolName"))
    return _first_said([*columns, *told, *raw]) or "unknown"


def _raw(parts: Sequence[StoredPart]) -> list[dict[str, Any]]:
    return [raw for part in parts if isinstance(raw := part.metadata.get("raw"), dict)]


def _readable(block: Any) -> str:
    if isinstance(block, dict):
        for kind, key in (("text", "text"), ("thinking", "thinking"), ("reasoning", "text")):
            if block.get("type") == kind and isinstance(block.get(key), str):
                return str(block[key])
    return stringify(block)


def _first_said(values: Iterable[Any]) -> str:
    return next((value for value in values if isinstance(value, str) and value), "")
