"""Recorded messages as words, parts and envelope, and exactly back: those of model providers' chat, and of the AI SDK.

Source: the words, the text extraction of lossless-claw 0.6.3, with three differences. The text of tool results counts;
media never put their data among the words, only captions and transcriptions; and JSON stands in for blocks of unknown
shape alone, not for reasoning, media or tool calls. The parts, its storage shape, extended by the `tool_calls` of
OpenAI chat.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lcm.encoding import is_well_formed, to_json, well_formed
from lcm.errors import TranscriptError
from lcm.javascript import parse, trim
from lcm.records.conversation import PART_TYPES, Message, Part, PartType, Role
from lcm.transcript.fields import id_in, json_in, object_in, said_at, said_beside, text_in

CALL_TYPES = frozenset(
    {"tool_use", "toolUse", "tool-use", "toolCall", "tool_call", "functionCall", "function_call", "tool-call"}
)
RESULT_TYPES = frozenset({"function_call_output", "toolResult", "tool_result", "tool_use_result", "tool-result"})
MEDIA_TYPES = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "document", "file", "input_file"}
    | {"media", "file-data", "file-url", "image-data", "image-url"}
)
SECRET_TYPES = frozenset({"redacted_thinking", "encrypted_content"})
_HELD_KEYS = ("data", "source", "image_url", "input_audio")
"""Under one of these a block of media holds it; a tool may list files as blocks of such types too."""
_SILENT_TYPES = CALL_TYPES | RESULT_TYPES | MEDIA_TYPES | SECRET_TYPES | {"text", "thinking", "reasoning"}
"""Blocks of these types have a known place for words: where that is empty, there are none."""

WORD_KEYS = ("text", "transcript", "transcription", "message", "summary")
LIST_KEYS = ("segments", "utterances", "paragraphs", "alternatives", "words", "items", "results")
NESTING_KEYS = ("content", "output", "result", "payload", "data", "value")
RESULT_KEYS = ("output", "content", "result")
_MAX_DEPTH = 6

Where = Callable[[dict[str, Any]], str | list[Any]]
"""Of a block its words, or where these may stand: the first value that holds some."""

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
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
CALL_ID_KEYS: tuple[str, ...] = ("toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "call_id")
_TOOL_NAME_KEYS: tuple[str, ...] = ("toolName", "tool_name")

_UI_SLOT = "parts"
_UI_TYPES: dict[str, PartType] = {"text": "text", "reasoning": "reasoning", "file": "file", "step-start": "step_start"}
_UI_RESULT_KEYS = ("output", "result", "errorText")


class DecomposedMessage(NamedTuple):
    """A recorded message taken apart: role, text, parts, and the envelope around them."""

    role: Role
    content: str
    parts: tuple[Part, ...]
    envelope: Mapping[str, Any]
    """`native` is the message with null for each slot whose value went into parts; `slots` says which those are,
    and whether the slot held a list of blocks or a single value."""

    def within(self, record: Mapping[str, Any], key: str) -> "DecomposedMessage":
        """The message, which stood under a key of a larger record; `rebuild_record` gives that back."""
        return self._replace(envelope={**self.envelope, "record": {**record, key: None}, "within": key})

    def message(
        self, message_id: str, session_id: str, created_at: datetime | None = None, author: str | None = None
    ) -> Message:
        """The message, with what names it, who says it and when."""
        return Message(message_id, self.role, self.content, session_id, created_at, author, self.parts, self.envelope)


def undivided(native: Mapping[str, Any], role: Role, parts: Iterable[Part], words: str = "") -> DecomposedMessage:
    """A message in a notation of its format's own, whose envelope keeps the record whole."""
    return DecomposedMessage(role, words, tuple(parts), {"native": native, "slots": {}})


def chat_message(native: object, session_id: str, started_at: datetime | None = None) -> Message:
    """Read one message of OpenAI-style chat, or of the AI SDK.

    Args:
        native: what was recorded.
        session_id: the session's, where the message names none.
        started_at: when it was said, where the message names no instant.

    Raises:
        TranscriptError: if it is not an object with a `role`, or its instant cannot be read.
    """
    if not isinstance(native, dict) or not isinstance(native.get("role"), str):
        raise TranscriptError("expected a message, an object with a `role`")
    said = decompose(native)
    created_at = said_at(native)
    if is_ui_message(native):
        said, created_at = with_ui_parts(native, said), created_at or said_beside(native, "metadata")
    # The name on a tool's message is the tool's; its parts keep it.
    author = text_in(native, "name") if said.role != "tool" else None
    return said.message(
        id_in(native, "id"), id_in(native, "session_id") or session_id, created_at or started_at, author
    )


def decompose(native: Mapping[str, Any], role: str | None = None) -> DecomposedMessage:
    """Split a recorded message into its words, its blocks and the rest; `rebuild` undoes it.

    Args:
        native: the message.
        role: who says it, for a message that does not name its `role` itself.
    """
    slots: dict[str, str] = {}
    parts: list[Part] = []
    content, calls, words = native.get("content"), native.get("tool_calls"), plain_text(native)
    said = native if role is None else {**native, "role": role}
    if content is not None or ("content" in native and not calls):
        slots["content"] = "list" if isinstance(content, list) else "value"
        if isinstance(content, list):
            parts += [_block_part(said, block) for block in content]
        else:
            call_id, tool_name = text_in(said, *CALL_ID_KEYS), _message_tool_name(said)
            parts.append(value_part("content", content, call_id, tool_name))
    if isinstance(calls, list) and not _stand_in(content, calls):
        slots["tool_calls"] = "list"
        parts += [_call_part(call) for call in calls]
    if not slots and "command" in native and "output" in native:
        parts.append(Part("text", words, metadata={"source": "bash-exec"}))
    elif not slots:
        parts.append(Part("agent", words or None, metadata={"source": "unknown-message-shape"}))
    rest = {key: None if key in slots else value for key, value in native.items()}
    envelope = {"native": rest, "slots": slots}
    return DecomposedMessage(_ROLES.get(said["role"], "assistant"), words, tuple(parts), envelope)


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


def rebuild_record(message: Message) -> dict[str, Any]:
    """Give back the whole record of the file that held the message: `rebuild` with what stood around it."""
    native, record = rebuild(message), message.envelope.get("record")
    return native if record is None else {**record, message.envelope["within"]: native}


def value_part(slot: str, value: object, call_id: str | None = None, tool_name: str | None = None) -> Part:
    """The part of a value that stands alone under a key; `rebuild` puts it back."""
    if not isinstance(value, str):
        return Part("agent", metadata={"slot": slot, "raw": value})
    metadata = {"slot": slot} if is_well_formed(value) else {"slot": slot, "raw": value}
    return Part("text", well_formed(value), call_id, tool_name, metadata=metadata)


def _block_part(native: Mapping[str, Any], block: object) -> Part:
    metadata = {"slot": "content", "raw": block}
    if not isinstance(block, dict):
        return Part("agent", well_formed(block) if isinstance(block, str) else None, metadata=metadata)
    part_type = _PART_TYPES.get(block_type(block), "agent")
    id_keys, name_keys = CALL_ID_KEYS, _TOOL_NAME_KEYS
    if part_type == "tool":
        id_keys, name_keys = (*id_keys, "id"), ("name", *name_keys)
    return Part(
        part_type,
        text=_block_text(block),
        tool_call_id=text_in(block, *id_keys) or text_in(native, *CALL_ID_KEYS),
        tool_name=text_in(block, *name_keys) or _message_tool_name(native),
        tool_input=json_in(block, "input", "arguments", "toolInput", "args") or text_in(block, "tool_input"),
        tool_output=json_in(_bare(block), "output", "toolOutput") or text_in(block, "tool_output"),
        metadata=metadata,
    )


def _bare(block: dict[str, Any]) -> dict[str, Any]:
    """The block of a result, its output without the `{type, value}` around it of the AI SDK."""
    output = block.get("output")
    is_wrapped = block_type(block) == "tool-result" and isinstance(output, dict) and "value" in output
    return {**block, "output": output["value"]} if is_wrapped else block  # type: ignore[index]  # an object


def _block_text(block: dict[str, Any]) -> str | None:
    if (text := text_in(block, "text", "thinking")) is not None or block_type(block) not in ("reasoning", "thinking"):
        return text
    return well_formed("\n".join(dict.fromkeys(text.strip() for text in texts_of(block.get("summary"))))) or None


def texts_of(entries: object) -> Iterator[str]:
    """The texts of one or several blocks, each an object with `text` or a text itself; nothing blank."""
    for entry in entries if isinstance(entries, list) else [entries]:
        text = entry.get("text") if isinstance(entry, dict) else entry
        if isinstance(text, str) and text.strip():
            yield text


def _stand_in(content: object, calls: Sequence[object]) -> bool:
    """Say whether all calls are blocks of the content too: LangChain writes those of some models twice."""
    blocks = content if isinstance(content, list) else []
    called = [block for block in blocks if block_type(block) in CALL_TYPES]
    made = {text_in(block, key) for block in called for key in ("id", "call_id")} - {None}
    return bool(calls) and all(text_in(call, "id") in made for call in calls)


def _call_part(call: object) -> Part:
    """One entry of OpenAI's `tool_calls`, whose `arguments` are JSON text already, or of LangChain's, with `args`."""
    called = object_in(call, "function") or (call if isinstance(call, dict) else {})
    given = called.get("arguments")
    return Part(
        "tool",
        tool_call_id=text_in(call, "id"),
        tool_name=text_in(called, "name"),
        tool_input=well_formed(given) if isinstance(given, str) else json_in(called, "arguments", "args"),
        metadata={"slot": "tool_calls", "raw": call},
    )


def _message_tool_name(native: Mapping[str, Any]) -> str | None:
    """A tool's own message may give its name as `name`, where others give their author's."""
    is_tool = _ROLES.get(native["role"]) == "tool"
    return text_in(native, *_TOOL_NAME_KEYS, "name") if is_tool else text_in(native, *_TOOL_NAME_KEYS)


def plain_text(native: Mapping[str, Any]) -> str:
    """Give the words of a message: of its `content`, or of a shell command with its `output`."""
    if "content" not in native:
        return well_formed(f"$ {native.get('command', '')}\n{native['output']}") if "output" in native else ""
    content = native["content"]
    words = words_in(content, _where_words_stand, has_media=False)
    if words is None:
        blocks = content if isinstance(content, list) else [content]
        unknown = [block for block in blocks if not _is_silent(block)]
        words = to_json(unknown if isinstance(content, list) else content) if unknown else ""
    return well_formed(words)


def words_in(value: object, where: Where, depth: int = 0, *, has_media: bool = True) -> str | None:
    """Find words in a value of any shape; None where there are none.

    Args:
        value: JSON; a text may be JSON too.
        where: the words stand in a block.
        depth: of the value, in what was asked of.
        has_media: a text that is media and nothing else, as JSON, counts as words.
    """
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        inner = _json_in(value)
        told = words_in(inner, where, depth + 1, has_media=has_media)
        return told or (value if has_media or not _is_media(inner) else None)
    if isinstance(value, list):
        found = (words_in(element, where, depth + 1, has_media=has_media) for element in value)
        return "\n".join(words for words in found if words and trim(words)) or None
    there = where(value) if isinstance(value, dict) else []
    if isinstance(there, str):
        return there
    found = (words_in(held, where, depth + 1, has_media=has_media) for held in there)
    return next((words for words in found if words and trim(words)), None)


def block_type(block: object) -> str:
    """Name the type of a block; "agent", the catch-all, where it names none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else "agent"


def response_in(entry: Any) -> Any:
    """What a `functionResponse` of Gemini holds; anything else as it is."""
    response = entry.get("functionResponse") if isinstance(entry, dict) else None
    return response.get("response") if isinstance(response, dict) else entry


def _is_silent(block: object) -> bool:
    if isinstance(block, str):
        return _is_media(_json_in(block))
    return block is None or _is_media(block) or block_type(block) in _SILENT_TYPES


def _json_in(text: str) -> Any:
    """The JSON object or array that a text is; None where it is none."""
    trimmed = trim(text)
    if trimmed[:1] + trimmed[-1:] not in ("{}", "[]"):
        return None
    try:
        return parse(trimmed)
    except ValueError:
        return None


def _is_media(value: object) -> bool:
    """Whether it is media and nothing else, or a result of a tool that holds no other block."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_media, value))
    if not isinstance(value, dict):
        return False
    blocks = value.get("content", value.get("value"))
    if isinstance(blocks, list):
        return _is_media(blocks)
    return block_type(value) in MEDIA_TYPES and any(map(value.get, _HELD_KEYS))


def _where_words_stand(block: dict[str, Any]) -> str | list[Any]:
    named = block_type(block)
    if named in CALL_TYPES or named in SECRET_TYPES:
        return []
    if named in RESULT_TYPES:
        return [block.get(key) for key in RESULT_KEYS]
    for key in WORD_KEYS:
        if isinstance(words := block.get(key), str) and words.strip():
            return words
    if named in MEDIA_TYPES:
        return []
    held = next((block[key] for key in LIST_KEYS if isinstance(block.get(key), list) and block[key]), None)
    return [held] if held else [block.get(key) for key in NESTING_KEYS]


def is_ui_message(native: Mapping[str, Any]) -> bool:
    """Say whether a message has the `parts` of Vercel's AI SDK (`UIMessage`, versions 4 to 6), each with its type."""
    parts = native.get(_UI_SLOT)
    return bool(parts) and isinstance(parts, list) and all(isinstance(p, dict) and "type" in p for p in parts)


def with_ui_parts(native: Mapping[str, Any], said: DecomposedMessage) -> DecomposedMessage:
    """The message with its parts; where it has `content` too, as in version 4, that has the words already.

    A part is text, reasoning, a file, a tool's call with its result (`tool-<name>`, `dynamic-tool`, in version 4
    `tool-invocation`), or of the page alone (`step-start`, `source-url`, `data-<name>`).
    """
    parts = [_ui_part(block) for block in native[_UI_SLOT]]
    return extended(said, parts, (_ui_words(block, is_told=bool(said.content)) for block in native[_UI_SLOT]))


def _ui_part(block: Mapping[str, Any]) -> Part:
    metadata = {"slot": _UI_SLOT, "raw": block}
    call = _ui_call(block)
    if not call:
        part_type = _UI_TYPES.get(str(block["type"]), "agent")
        return Part(part_type, text_in(block, "text", "reasoning"), metadata=metadata)
    return Part(
        "tool",
        tool_call_id=text_in(call, "toolCallId"),
        tool_name=text_in(call, "toolName") or str(block["type"]).removeprefix("tool-"),
        tool_input=json_in(call, "input", "args"),
        tool_output=json_in(call, *_UI_RESULT_KEYS),
        metadata=metadata,
    )


def _ui_call(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """What says of a tool's call what was asked and answered; empty for another part."""
    is_call = str(block["type"]).startswith(("tool-", "dynamic-tool"))
    return object_in(block, "toolInvocation") or (block if is_call else {})


def _ui_words(block: Mapping[str, Any], is_told: bool) -> str | None:
    """The words of a text, or of what a tool gave back."""
    if call := _ui_call(block):
        return plain_text({"content": next((call[key] for key in _UI_RESULT_KEYS if call.get(key) is not None), None)})
    return text_in(block, "text") if block["type"] == "text" and not is_told else None


def recorded(message: Message, key: str, otherwise: Any = None) -> Any:
    """What the record of a message holds under a key: itself, else in its `metadata`; else what stands in the envelope
    without a record, as a host gives it, or in `metadata` there."""
    for record in (message.envelope.get("native"), message.envelope):
        if isinstance(record, Mapping):
            for place in (record, record.get("metadata")):
                if isinstance(place, Mapping) and key in place:
                    return place[key]
    return otherwise


def recorded_bundle(message: Message) -> str:
    """The bundle of messages that the record names; empty where it names none."""
    named = recorded(message, "continuity_bundle_id")
    return named if isinstance(named, str) else ""
