"""How stored messages and summaries are shown: as an agent's messages, as rows of the original's store, and as text.

Agent messages (user, assistant, toolResult) are in the notation of OpenClaw. What stands in it stays as it is. Of other
formats, calls become `toolCall` blocks of the assistant, and each result becomes a message of its own, behind its call,
so that what pairs calls with results sees them all. A call or a result without an id cannot be paired: it becomes text.

Source: the store and the assembler of lossless-claw 0.6.3.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr
from zoneinfo import ZoneInfo

from lcm.clock import EPOCH
from lcm.encoding import well_formed
from lcm.javascript import parse, stringify, trim
from lcm.records.conversation import Message, Part, PartType
from lcm.records.summary import Summary
from lcm.transcript.large_files import compacted
from lcm.transcript.message_tokens import images_in
from lcm.transcript.parts import (
    CALL_ID_KEYS,
    CALL_TYPES,
    LIST_KEYS,
    MEDIA_TYPES,
    NESTING_KEYS,
    RESULT_KEYS,
    RESULT_TYPES,
    WORD_KEYS,
    block_type,
    is_translated,
    plain_text,
    read_whole,
    response_in,
    words_in,
)

AGENT_CALL_TYPES = frozenset({"toolCall", "toolUse", "tool_use", "tool-use", "functionCall", "function_call"})
_TOOL_TYPES = CALL_TYPES | RESULT_TYPES
_PART_TYPES: dict[str, PartType] = {
    "text": "text",
    "thinking": "reasoning", "reasoning": "reasoning",
    **dict.fromkeys([*_TOOL_TYPES, "tool"], "tool"),
    "patch": "patch",
    "file": "file", "image": "file",
    "subtask": "subtask", "compaction": "compaction",
    "step_start": "step_start", "step-start": "step_start",
    "step_finish": "step_finish", "step-finish": "step_finish",
    "snapshot": "snapshot", "retry": "retry", "agent": "agent",
}  # fmt: skip
_DOCUMENT_TYPES = frozenset({"document", "file", "input_file"})
_EXTERNAL_KEYS = ("externalizedFileId", "originalByteSize", "toolOutputExternalized", "externalizationReason")
_SPOKEN = {"user": "user", "system": "user", "assistant": "assistant", "tool": "toolResult", "toolResult": "toolResult"}
_FOREIGN_ROLES = frozenset({"function", "developer", "model", "gemini"})
_OWN_TEXT = frozenset({"text", "thinking", "reasoning"})

AgentMessage = dict[str, Any]
RuntimeMessage = dict[str, Any]
Block = dict[str, Any]


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
    foreign = {"input_text", "output_text", *(RESULT_TYPES if role in ("user", "assistant") else ())}
    return not any(block_type(block) in foreign for block in (content if isinstance(content, list) else ()))


def _translated(message: Message, native: Mapping[str, Any]) -> Iterator[AgentMessage]:
    """The message from its parts: what it says and calls, and the results that it holds."""
    blocks: list[Any] = []
    results: list[AgentMessage] = []
    for part in message.parts:
        if part.part_type == "tool":
            # A part may hold a call and its result.
            is_result = message.role != "assistant" or block_type(part.metadata.get("raw")) in RESULT_TYPES
            if not is_result:
                blocks.append(_call(part))
            if is_result or part.tool_output is not None:
                results.append(_result(part, native))
        elif message.role == "tool":
            results.append(_result(part, native))
        else:
            blocks += _blocks(part)
    role = "assistant" if message.role == "tool" else message.role
    said = [{"role": role, "content": blocks}] if blocks or not results else []
    yield from [*said, *_joined(results)] if role == "assistant" else [*_joined(results), *said]


def _joined(results: list[AgentMessage]) -> list[AgentMessage]:
    """The blocks of a tool's message that stand behind one another under one id, in one message."""
    joined: list[AgentMessage] = []
    for result in results:
        if joined and joined[-1].get("toolCallId") == result.get("toolCallId"):
            joined[-1] = {**joined[-1], "content": [*joined[-1]["content"], *result["content"]]}
        else:
            joined.append(result)
    return joined


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


def _call(part: Part) -> Block:
    if not part.tool_call_id:
        return {"type": "text", "text": f"[call of {part.tool_name or 'a tool'}: {part.tool_input or ''}]"}
    name = {"name": part.tool_name} if part.tool_name else {}
    return {"type": "toolCall", "id": part.tool_call_id, **name, "arguments": _value(part.tool_input or "{}")}


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
    output = _value(part.tool_output) if part.text is None and part.tool_output is not None else []
    outputs = output if isinstance(output, list) else [output]
    pictures = [output for output in outputs if images_in(output)]
    if pictures and len(pictures) == len(outputs):
        return pictures
    if isinstance(content, str):
        words = content
    else:
        others = [output for output in outputs if not images_in(output)]
        words = "\n".join(filter(None, (plain_text({"content": response_in(other)}) for other in others)))
        words = words or part.text or (stringify(others) if pictures else part.tool_output) or ""
    return [{"type": "text", "text": words}, *pictures]


def stored_text(native: Mapping[str, Any]) -> str:
    """Give the words of an agent message: of its `content`, or of a shell command with its `output`."""
    if "content" not in native:
        return f"$ {native.get('command', '')}\n{native['output']}" if "output" in native else ""
    content = native["content"]
    if isinstance(content, str):
        return content
    words = words_in(content, _where_words_stand)
    if words is not None:
        return words
    told = _without_media(content)
    if told is None or (isinstance(told, list) and all(block_type(block) in _TOOL_TYPES for block in told)):
        return ""
    return stringify(told)


def _where_words_stand(block: dict[str, Any]) -> str | list[Any]:
    named = block_type(block)
    if named in _TOOL_TYPES:
        return [block.get(key) for key in RESULT_KEYS] if block.get("toolOutputExternalized") is True else []
    if words := next((block[key] for key in WORD_KEYS if isinstance(block.get(key), str) and trim(block[key])), ""):
        return str(words)
    if held := next((block[key] for key in LIST_KEYS if isinstance(block.get(key), list) and block[key]), None):
        return [held]
    if named in MEDIA_TYPES:
        return [block.get("content")] if named in _DOCUMENT_TYPES else []
    return [block.get(key) for key in NESTING_KEYS]


def _without_media(value: Any) -> Any:
    """The value without the blocks that hold media, at any depth."""
    if isinstance(value, list):
        return [_without_media(element) for element in value if block_type(element) not in MEDIA_TYPES]
    if isinstance(value, dict):
        kept = {key: held for key, held in value.items() if block_type(held) not in MEDIA_TYPES}
        return {key: _without_media(held) for key, held in kept.items()}
    return value


def stored_parts(native: Mapping[str, Any]) -> list[Part]:
    """Split an agent message into its rows; `metadata` holds who said it and the block itself."""
    said_by = {"originalRole": native["role"]}
    if "content" not in native:
        if "command" in native and "output" in native:
            command = _first_text(native, ("command",))
            source = {"source": "bash-exec"} | ({} if command is None else {"command": command})
            return [Part("text", stored_text(native), metadata=said_by | source)]
        unknown = {"source": "unknown-message-shape", "raw": native}
        return [Part("agent", stored_text(native) or None, metadata=said_by | unknown)]
    content = native["content"]
    told = {
        "toolCallId": _first_text(native, (*CALL_ID_KEYS, "id")),
        "toolName": _first_text(native, ("toolName", "tool_name")),
        "isError": native["isError"] if isinstance(native.get("isError"), bool) else native.get("is_error"),
    }
    of_message = said_by | {key: value for key, value in told.items() if value is not None}
    if isinstance(content, str):
        return [Part("text", content, metadata=of_message)]
    if not isinstance(content, list):
        odd = {"source": "non-array-content", "raw": content}
        return [Part("agent", stored_text(native) or None, metadata=said_by | odd)]
    return [_stored_block(of_message, block) for block in content]


def _stored_block(of_message: dict[str, Any], block: object) -> Part:
    call_id, tool_name = of_message.get("toolCallId"), of_message.get("toolName")
    if not isinstance(block, dict):
        return Part("agent", None, call_id, tool_name, metadata={**of_message, "rawType": "agent", "raw": block})
    named = _first_text(block, ("rawType", "type")) or "agent"
    part_type = _PART_TYPES.get(named, "agent")
    is_renamed = "rawType" in block and block.get("type") != named
    external = {key: block[key] for key in _EXTERNAL_KEYS if block.get(key) is not None}
    return Part(
        part_type,
        text=_stored_words(block),
        tool_call_id=_first_text(block, (*CALL_ID_KEYS, "id") if part_type == "tool" else CALL_ID_KEYS) or call_id,
        tool_name=_first_text(block, ("name", "toolName", "tool_name")) or tool_name,
        tool_input=_json(block, ("input", "arguments", "toolInput"), "tool_input"),
        tool_output=_json(block, ("output", "toolOutput"), "tool_output"),
        metadata={**of_message, **external, "rawType": named, "raw": {**block, "type": named} if is_renamed else block},
    )


def _stored_words(block: Mapping[str, Any]) -> str | None:
    text = _first_text(block, ("text", "thinking"))
    if text is not None or block.get("type") not in ("reasoning", "thinking"):
        return text
    summary = block.get("summary")
    entries = summary if isinstance(summary, list) else [summary]
    texts = (entry.get("text") if isinstance(entry, dict) else entry for entry in entries)
    return "\n".join(dict.fromkeys(trim(text) for text in texts if isinstance(text, str) and trim(text))) or None


def _json(block: Mapping[str, Any], keys: Iterable[str], json_key: str) -> str | None:
    """The first value that is there as JSON text; under `json_key` it is JSON text already."""
    key = next((key for key in keys if key in block), None)
    return _first_text(block, (json_key,)) if key is None else stringify(block[key])


def _first_text(holder: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((holder[key] for key in keys if isinstance(holder.get(key), str)), None)


def _block_of(part: Part, part_id: str) -> Any:
    """Rebuild the block of a row: as recorded, except calls and results of tools, which come from the columns.

    Args:
        part: the row.
        part_id: names a tool call that has no id of its own.
    """
    raw, named = part.metadata.get("raw"), part.metadata.get("rawType")
    if isinstance(raw, list):
        return raw
    if isinstance(raw, dict) and raw.get("type") not in _TOOL_TYPES:
        return _openai_reasoning(raw) or raw
    if isinstance(raw, dict) and part.part_type == "tool":
        is_result = part.metadata.get("originalRole") == "toolResult" or named == "function_call_output"
        return _result_block(part, named, raw) if is_result else _call_block(part, named, raw, part_id)
    is_said = part.part_type == "text" or part.text
    return {"type": "text", "text": (part.text or "") if is_said else stringify(dict(part.metadata))}


def _openai_reasoning(raw: Mapping[str, Any]) -> Block | None:
    """The reasoning item of OpenAI that OpenClaw keeps as the signature of a thinking block."""
    signature = raw.get("thinkingSignature")
    if raw.get("type") != "thinking" or not isinstance(signature, str) or not signature.startswith("{"):
        return None
    item = _value(signature)
    is_reasoning = isinstance(item, dict) and item.get("type") == "reasoning" and isinstance(item.get("id"), str)
    return item if is_reasoning else None


def _call_block(part: Part, named: object, raw: Mapping[str, Any], part_id: str) -> Block:
    kind = named if named in AGENT_CALL_TYPES else "toolCall"
    call_id = part.tool_call_id or call_id_of(raw)
    name = part.tool_name or _first_said([raw.get("name")])
    given = _value(part.tool_input)
    if given is None:
        given = raw.get("arguments", raw.get("input"))
    block: Block = {"type": kind}
    if kind == "function_call":
        block |= {"call_id": call_id} if call_id else {}
    else:
        block["id"] = call_id or f"toolu_lcm_{part_id}"
    block |= {"name": name} if name else {}
    if given is not None:
        block["arguments" if kind in ("function_call", "functionCall", "toolCall") else "input"] = given
    return block


def _result_block(part: Part, named: object, raw: Mapping[str, Any]) -> Block:
    if isinstance(raw.get("text"), str) and "output" not in raw and "content" not in raw:
        return {"type": "text", "text": raw["text"]}
    kind = named if named in ("function_call_output", "toolResult", "tool_result") else "tool_result"
    block: Block = {"type": kind} | ({"name": part.tool_name} if part.tool_name else {})
    output = part.text if (value := _value(part.tool_output)) is None else value
    if output is None and "output" not in raw and "content" in raw:
        block["content"] = raw["content"]
    else:
        block["output"] = raw.get("output", "") if output is None else output
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
    blocks = _blocks_of(native, message_id) if "content" in native else []
    if not blocks:
        return stored_text(native)
    if native["role"] in ("user", "system") and (alone := _only_text(blocks)) is not None:
        return alone
    return stringify(blocks)


def _blocks_of(native: AgentMessage, message_id: str) -> list[Any]:
    """The blocks of an agent message, once its rows have been stored and read again."""
    content = native.get("content")
    if isinstance(content, str):  # as its one row would be read again, sooner
        return [{"type": "text", "text": content}]
    if isinstance(content, list) and all(block_type(block) == "text" and "rawType" not in block for block in content):
        return content  # storing changes nothing about plain text
    return [_block_of(part, f"{message_id}_{place}") for place, part in enumerate(stored_parts(native))]


def _only_text(blocks: list[Any]) -> str | None:
    """The text of a message that is one block of text; None for any other."""
    match blocks:
        case [{"type": "text", "text": str(text)}]:
            return text
    return None


def summary_text(summary: Summary, zone: ZoneInfo, *, is_untrusted: bool = False) -> str:
    """Give the summary, the ids of the summaries that it was condensed from, and when its sources were said.

    What has no time, which the store dates at the epoch, is told none. `is_untrusted`: a model is told not to obey it.
    """
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
    sources = summary.source_ids if summary.kind == "condensed" else ()
    parents = [f"    <summary_ref id={_quoted(source_id)} />" for source_id in sources]
    listed = ["  <parents>", *parents, "  </parents>"] if parents else []
    return "\n".join(
        [f"<summary {told}>", *listed, "  <content>", escape(summary.content), "  </content>", "</summary>"]
    )


def _quoted(value: str) -> str:
    return quoteattr(value, {'"': "&quot;"})


def _local(instant: datetime | None, zone: ZoneInfo) -> str | None:
    return None if instant is None or instant == EPOCH else instant.astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")


def runtime_messages(message: Message) -> list[RuntimeMessage]:
    """Give what a model is sent of a message."""
    return [_runtime_message(native, message.message_id) for native in agent_messages(message)]


def _runtime_message(native: AgentMessage, message_id: str) -> RuntimeMessage:
    role = _SPOKEN.get(native["role"], "assistant")
    blocks = _blocks_of(native, message_id)
    if role == "user":
        alone = _only_text(blocks)
        return {"role": "user", "content": "" if not blocks else blocks if alone is None else alone}
    parts = stored_parts(native) if role == "toolResult" else []
    call_id = _column(parts, "tool_call_id", "toolCallId", ("toolCallId", "tool_call_id"))
    if not call_id:
        return {"role": "assistant", "content": blocks}
    error = next((part.metadata["isError"] for part in parts if "isError" in part.metadata), None)
    tool_name = _column(parts, "tool_name", "toolName", ("name", "toolName")) or "unknown"
    message = {"role": "toolResult", "content": blocks, "toolCallId": call_id, "toolName": tool_name}
    return message if error is None else {**message, "isError": error}


def _column(parts: Sequence[Part], column: str, key: str, raw_keys: Sequence[str]) -> str:
    """What rows say of a call: the first in the column, else of the message, else in a block that they were made of."""
    columns, told = ([getattr(part, column) for part in parts], [part.metadata.get(key) for part in parts])
    blocks = [raw for part in parts if isinstance(raw := part.metadata.get("raw"), dict)]
    return _first_said([*columns, *told, *(block.get(name) for block in blocks for name in raw_keys)])


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


def _readable(block: Any) -> str:
    match block:
        case {"type": "text" | "reasoning", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return text
    return stringify(block)


def calls_of(message: RuntimeMessage) -> list[tuple[str, str]]:
    """The id and the name of each call that the message makes, in order; a call without an id is none."""
    if message["role"] != "assistant":
        return []
    calls = (block for block in blocks_in(message) if block_type(block) in AGENT_CALL_TYPES)
    named = ((call_id_of(block), block.get("name")) for block in calls)
    return [(call_id, name if isinstance(name, str) else "") for call_id, name in named if call_id]


def call_id_of(block: Mapping[str, Any]) -> str:
    return _first_said(block.get(key) for key in ("id", "call_id"))


def result_id_of(message: RuntimeMessage) -> str:
    """The id of the call that the message answers; empty where it answers none."""
    is_result = message["role"] == "toolResult"
    return _first_said(message.get(key) for key in ("toolCallId", "toolUseId")) if is_result else ""


def blocks_in(message: RuntimeMessage) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _first_said(values: Iterable[Any]) -> str:
    return next((value for value in values if isinstance(value, str) and value), "")
