"""Recorded messages as parts and envelope, and exactly back."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lcm.encoding import is_well_formed, to_json, well_formed
from lcm.records.conversation import PART_TYPES, Message, Part, PartType, Role
from lcm.transcript.plain_text import CALL_TYPES, MEDIA_TYPES, RESULT_TYPES, block_type, plain_text

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
    "tool": "tool", "toolResult": "tool", "function": "tool",
}  # fmt: skip

_PART_TYPES: dict[str, PartType] = {
    **{name: name for name in PART_TYPES},
    **dict.fromkeys(CALL_TYPES | RESULT_TYPES, "tool"),
    **dict.fromkeys(MEDIA_TYPES, "file"),
    **dict.fromkeys(("input_text", "output_text"), "text"),
    **dict.fromkeys(("thinking", "redacted_thinking"), "reasoning"),
    "step-start": "step_start",
    "step-finish": "step_finish",
}

_CALL_ID_KEYS: tuple[str, ...] = ("toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "call_id")
_TOOL_NAME_KEYS: tuple[str, ...] = ("toolName", "tool_name")


class DecomposedMessage(NamedTuple):
    """A recorded message taken apart: role, text, parts, and the envelope around them."""

    role: Role
    content: str
    parts: tuple[Part, ...]
    envelope: dict[str, Any]
    """`native` is the message with null for each slot whose value went into parts; `slots` says which those are,
    and whether the slot held a list of blocks or a single value."""


def decompose(native: Mapping[str, Any], role: str | None = None) -> DecomposedMessage:
    """Split a recorded message into its words, its blocks and the rest; `rebuild` undoes it.

    Args:
        native: the message.
        role: who says it, for a message that does not name its `role` itself.

    Source: the storage shape of lossless-claw 0.6.3, extended by the `tool_calls` of OpenAI chat.
    """
    slots: dict[str, str] = {}
    parts: list[Part] = []
    content, calls = native.get("content"), native.get("tool_calls")
    said = native if role is None else {**native, "role": role}
    if content is not None or ("content" in native and not calls):
        slots["content"] = "list" if isinstance(content, list) else "value"
        parts += _content_parts(said, content)
    if isinstance(calls, list):
        slots["tool_calls"] = "list"
        parts += [_call_part(call) for call in calls]
    if not slots:
        parts.append(_slotless_part(native))
    rest = {key: None if key in slots else value for key, value in native.items()}
    return DecomposedMessage(
        _ROLES.get(said["role"], "assistant"), plain_text(native), tuple(parts), {"native": rest, "slots": slots}
    )


def extended(said: DecomposedMessage, parts: Iterable[Part], words: Iterable[str | None]) -> DecomposedMessage:
    """A message with what stands in other slots of its own; `rebuild` puts that back too.

    Args:
        said: the message taken apart.
        parts: more of it, each with its `slot`, and with the element of that list as `raw`; a slot that is no list has
            one part.
        words: what these say.
    """
    native, more = said.envelope["native"], tuple(parts)
    named = dict.fromkeys(part.metadata["slot"] for part in more)
    slots = said.envelope["slots"] | {slot: "list" if isinstance(native[slot], list) else "value" for slot in named}
    rest = {key: None if key in slots else value for key, value in native.items()}
    known = tuple(part for part in said.parts if "slot" in part.metadata)
    content = "\n".join(filter(None, (said.content, *words)))
    return DecomposedMessage(said.role, content, known + more, {"native": rest, "slots": slots})


def tool_calls(message: Message) -> int:
    """How many tools the message calls; results stand in messages of the tool or of the user."""
    calls = (one for one in message.parts if block_type(one.metadata.get("raw")) not in RESULT_TYPES)
    return sum(part.part_type == "tool" for part in calls) if message.role == "assistant" else 0


def rebuild(message: Message) -> dict[str, Any]:
    """Give back the recorded message: key for key, value for value, in the recorded order; the caller owns it.

    Raises:
        ValueError: if the message did not come from a transcript reader.
    """
    if "native" not in message.envelope:
        raise ValueError(f"message {message.message_id!r} has no recorded original; only transcript readers keep one")
    copy: dict[str, Any] = json.loads(json.dumps(_filled(message, ("recorded", "raw"))))
    return copy


def read_whole(message: Message) -> dict[str, Any]:
    """Give the recorded message with all that it says, also where the record shows the beginning alone.

    The values are the message's own: the caller changes none.
    """
    return _filled(message, ("raw",))


def is_translated(message: Message) -> bool:
    """Whether its parts are in another notation than its record, which is kept whole."""
    return not message.envelope.get("slots") and any("slot" in part.metadata for part in message.parts)


def _filled(message: Message, keys: Sequence[str]) -> dict[str, Any]:
    """The native message, its slots filled with the first of the keys that a part has, or else its text."""
    native: dict[str, Any] = dict(message.envelope["native"])
    for slot, shape in message.envelope["slots"].items():
        blocks = [_held(part, keys) for part in message.parts if part.metadata.get("slot") == slot]
        native[slot] = blocks if shape == "list" else blocks[0]
    return native


def _held(part: Part, keys: Sequence[str]) -> Any:
    for key in keys:
        if key in part.metadata:
            return part.metadata[key]
    return part.text


def enclosed(envelope: Mapping[str, Any], record: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The envelope of a message that stood under a key of a larger record; `rebuild_record` gives that back."""
    return {**envelope, "record": {**record, key: None}, "within": key}


def rebuild_record(message: Message) -> dict[str, Any]:
    """Give back the whole record of the file that held the message: `rebuild` with what stood around it."""
    native, record = rebuild(message), message.envelope.get("record")
    return native if record is None else {**record, message.envelope["within"]: native}


def _content_parts(native: Mapping[str, Any], content: object) -> Iterator[Part]:
    if isinstance(content, list):
        for block in content:
            yield _block_part(native, block)
    elif isinstance(content, str):
        text = well_formed(content)
        metadata = {"slot": "content"} if is_well_formed(content) else {"slot": "content", "raw": content}
        yield Part("text", text, _first_text(native, _CALL_ID_KEYS), _message_tool_name(native), metadata=metadata)
    else:
        yield Part("agent", metadata={"slot": "content", "raw": content})


def _block_part(native: Mapping[str, Any], block: object) -> Part:
    metadata = {"slot": "content", "raw": block}
    if not isinstance(block, dict):
        return Part("agent", well_formed(block) if isinstance(block, str) else None, metadata=metadata)
    part_type = _PART_TYPES.get(block_type(block), "agent")
    id_keys, name_keys = _CALL_ID_KEYS, _TOOL_NAME_KEYS
    if part_type == "tool":
        id_keys, name_keys = (*id_keys, "id"), ("name", *name_keys)
    return Part(
        part_type,
        text=_block_text(block),
        tool_call_id=_first_text(block, id_keys) or _first_text(native, _CALL_ID_KEYS),
        tool_name=_first_text(block, name_keys) or _message_tool_name(native),
        tool_input=_json_of(block, ("input", "arguments", "toolInput", "args"), "tool_input"),
        tool_output=_json_of(_bare(block), ("output", "toolOutput"), "tool_output"),
        metadata=metadata,
    )


def _bare(block: dict[str, Any]) -> dict[str, Any]:
    """The block of a result, its output without the `{type, value}` around it of the AI SDK."""
    output = block.get("output")
    is_wrapped = block_type(block) == "tool-result" and isinstance(output, dict) and "value" in output
    return {**block, "output": output["value"]} if is_wrapped else block  # type: ignore[index]  # an object


def _block_text(block: dict[str, Any]) -> str | None:
    for key in ("text", "thinking"):
        if isinstance(block.get(key), str):
            return well_formed(block[key])
    if block_type(block) in ("reasoning", "thinking"):
        summary = block.get("summary")
        entries = summary if isinstance(summary, list) else [summary]
        texts = (entry.get("text") if isinstance(entry, dict) else entry for entry in entries)
        distinct = dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip())
        return well_formed("\n".join(distinct)) or None
    return None


def _call_part(call: object) -> Part:
    """One entry of OpenAI's `tool_calls`, whose `arguments` are JSON text already, or of LangChain's, with `args`."""
    metadata = {"slot": "tool_calls", "raw": call}
    if not isinstance(call, dict):
        return Part("tool", metadata=metadata)
    function = call.get("function")
    called = function if isinstance(function, dict) else call
    arguments = called.get("arguments")
    return Part(
        "tool",
        tool_call_id=_first_text(call, ("id",)),
        tool_name=_first_text(called, ("name",)),
        tool_input=well_formed(arguments) if isinstance(arguments, str) else _json_of(called, ("arguments", "args")),
        metadata=metadata,
    )


def _slotless_part(native: Mapping[str, Any]) -> Part:
    if "command" in native and "output" in native:
        return Part("text", plain_text(native), metadata={"source": "bash-exec"})
    return Part("agent", plain_text(native) or None, metadata={"source": "unknown-message-shape"})


def _message_tool_name(native: Mapping[str, Any]) -> str | None:
    """A tool's own message may give its name as `name`, where others give their author's."""
    is_tool = _ROLES.get(native["role"]) == "tool"
    return _first_text(native, (*_TOOL_NAME_KEYS, "name") if is_tool else _TOOL_NAME_KEYS)


def _first_text(holder: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((well_formed(holder[key]) for key in keys if isinstance(holder.get(key), str)), None)


def _json_of(block: Mapping[str, Any], keys: Iterable[str], json_key: str = "") -> str | None:
    """Give the first value that is there as JSON text; under `json_key` it is JSON text already."""
    value = next((block[key] for key in keys if block.get(key) is not None), None)
    return _first_text(block, (json_key,)) if value is None else to_json(value)
