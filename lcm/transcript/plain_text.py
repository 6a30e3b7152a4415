"""The plain words of a recorded message, for search and for people.

Source: the text extraction of lossless-claw 0.6.3, with three differences. The text of tool results counts;
media never put their data among the words, only captions and transcriptions; and JSON stands in for blocks of
unknown shape alone, not for reasoning, media or tool calls.
"""

import json
from collections.abc import Mapping
from typing import Any

from lcm.encoding import to_json, well_formed

CALL_TYPES = frozenset(
    {"tool_use", "toolUse", "tool-use", "toolCall", "tool_call", "functionCall", "function_call", "tool-call"}
)
RESULT_TYPES = frozenset({"function_call_output", "toolResult", "tool_result", "tool_use_result", "tool-result"})
MEDIA_TYPES = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "document", "file", "input_file"}
    | {"media", "file-data", "file-url", "image-data", "image-url"}
)
_HELD_KEYS = ("data", "source", "image_url", "input_audio")
"""Under one of these a block of media holds it; a tool may list files as blocks of such types too."""
_SECRET_TYPES = frozenset({"redacted_thinking", "encrypted_content"})
_SILENT_TYPES = CALL_TYPES | RESULT_TYPES | MEDIA_TYPES | _SECRET_TYPES | {"text", "thinking", "reasoning"}
"""Blocks of these types have a known place for words: where that is empty, there are none."""

_WORD_KEYS = ("text", "transcript", "transcription", "message", "summary")
_LIST_KEYS = ("segments", "utterances", "paragraphs", "alternatives", "words", "items", "results")
_NESTING_KEYS = ("content", "output", "result", "payload", "data", "value")
_RESULT_KEYS = ("output", "content", "result")

_MAX_DEPTH = 6


def plain_text(native: Mapping[str, Any]) -> str:
    """Give the words of a message: of its `content`, or of a shell command with its `output`."""
    if "content" not in native:
        if "output" in native:
            return well_formed(f"$ {native.get('command', '')}\n{native['output']}")
        return ""
    content = native["content"]
    words = _words(content, 0)
    if words is None:
        blocks = content if isinstance(content, list) else [content]
        unknown = [block for block in blocks if not _is_silent(block)]
        words = to_json(unknown if isinstance(content, list) else content) if unknown else ""
    return well_formed(words)


def block_type(block: object) -> str:
    """Name the type of a block; "agent", the catch-all, where it names none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else "agent"


def _is_silent(block: object) -> bool:
    if isinstance(block, str):
        return _is_media(_json_in(block))
    return block is None or _is_media(block) or block_type(block) in _SILENT_TYPES


def _words(value: object, depth: int) -> str | None:
    """Find words in a value of any shape; None where there are none."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        inner = _json_in(value)
        return (None if inner is None else _words(inner, depth + 1)) or (None if _is_media(inner) else value)
    if isinstance(value, list):
        found = [_words(element, depth + 1) for element in value]
        return "\n".join(words for words in found if words and not words.isspace()) or None
    return _words_of_block(value, depth) if isinstance(value, dict) else None


def _json_in(text: str) -> Any:
    """The JSON object or array that a text is; None where it is none."""
    trimmed = text.strip()
    if trimmed[:1] + trimmed[-1:] not in ("{}", "[]"):
        return None
    try:
        return json.loads(trimmed)
    except (RecursionError, ValueError):
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


def _words_of_block(block: dict[str, Any], depth: int) -> str | None:
    kind = block_type(block)
    if kind in CALL_TYPES | _SECRET_TYPES:
        return None
    if kind in RESULT_TYPES:
        return _first_words(block, _RESULT_KEYS, depth)
    for key in _WORD_KEYS:
        if isinstance(words := block.get(key), str) and words.strip():
            return words
    if kind in MEDIA_TYPES:
        return None
    listed = next((block[key] for key in _LIST_KEYS if isinstance(block.get(key), list) and block[key]), None)
    return _words(listed, depth + 1) if listed else _first_words(block, _NESTING_KEYS, depth)


def _first_words(block: dict[str, Any], keys: tuple[str, ...], depth: int) -> str | None:
    found = (_words(block.get(key), depth + 1) for key in keys)
    return next((words for words in found if words and not words.isspace()), None)
