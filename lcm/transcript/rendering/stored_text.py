"""The words of an agent message as the original's store keeps them.

Source: the plain text of lossless-claw 0.6.3, with two defects mended. Media never put their data among the words, and
content that is one text stays that text, even if it is itself JSON.
"""

from collections.abc import Mapping
from typing import Any

from lcm.javascript import parse, stringify, trim
from lcm.transcript.plain_text import CALL_TYPES, MEDIA_TYPES, RESULT_TYPES, block_type

TOOL_TYPES = CALL_TYPES | RESULT_TYPES

_WORD_KEYS = ("text", "transcript", "transcription", "message", "summary")
_LIST_KEYS = ("segments", "utterances", "paragraphs", "alternatives", "words", "items", "results")
_NESTING_KEYS = ("content", "output", "result", "payload", "data", "value")
_EXTERNALIZED_KEYS = ("output", "content", "result")
_DOCUMENT_TYPES = frozenset({"document", "file", "input_file"})

_MAX_DEPTH = 6


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
