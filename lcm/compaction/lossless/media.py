"""Messages with media as words: what a summarizer cannot see is named, what only encodes it is left out.

Source: lossless-claw 0.6.3; `meaningful` and `without_reasoning` 0.15.3.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from lcm.javascript import trim
from lcm.records.conversation import Message, Part

OMITTED = "[embedded media omitted]"
ALONE = "[Media attachment]"
BESIDE = " [with media attachment]"

_MEDIA_PARTS = ("file", "snapshot")
_MEDIA_TYPES = ("file", "image", "snapshot")
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+-]+=[\w.+-]*)*;base64,[A-Za-z0-9+/=_-]+", re.ASCII)
_DATA_URL_START = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]", re.ASCII)
_MEDIA_PATH = re.compile(r"MEDIA:/\S+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_LONG_BASE64 = 256
_WORD_KEYS = ("text", "caption", "alt", "title", "summary")
_NESTING_KEYS = ("content", "parts", "items", "message", "messages")
_MAX_DEPTH = 4
_TOLD_KEYS = (
    *_WORD_KEYS,
    *("value", *_NESTING_KEYS, "input", "arguments", "output", "result", "results", "data", "query", "command"),
)
_REASONING_TYPES = ("reasoning", "thinking", "redacted_thinking")
_TOLD_DEPTH = 8
_REASONING = "|".join(
    rf"{re.escape(opening)}(?:.*?{re.escape(closing)})"
    for opening, closing in (
        *((f"<{tag}>", f"</{tag}>") for tag in ("think", "thinking", "reasoning")),
        ("<|think|>", "<|/think|>"),
        ("[thinking]", "[/thinking]"),
    )
)
_OPENING = r"(?:<(?:think|thinking|reasoning)>|<\|think\|>|\[thinking\])"
_LEADING_REASONING = re.compile(rf"\A\s*(?:(?:{_REASONING})\s*)+", re.IGNORECASE | re.DOTALL)
_STANDING_REASONING = re.compile(
    rf"^[ \t]*(?:(?:{_REASONING})[ \t]*$|{_OPENING}[ \t]*$.*\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)


def has_media(message: Message) -> bool:
    return any(_is_media(part) for part in message.parts)


def annotated(words: str) -> str:
    """The words of a message with media, and a note that there were some."""
    words = trim(_sanitised(words))
    if not words:
        return ALONE
    return words if words.endswith(BESIDE) else words + BESIDE


def words_beside_media(message: Message, content: str) -> str:
    """What the parts without media say; where they say nothing, what the content does."""
    said = "\n".join(part.text for part in message.parts if part.text and not _is_media(part))
    return said if trim(_sanitised(said)) else _words_in(content)


def _is_media(part: Part) -> bool:
    raw = part.metadata.get("raw")
    types = (part.metadata.get("rawType"), raw.get("type") if isinstance(raw, dict) else None)
    return part.part_type in _MEDIA_PARTS or any(kind in _MEDIA_TYPES for kind in types)


def _sanitised(text: str) -> str:
    lines = _DATA_URL.sub(OMITTED, text).split("\n")
    return "\n".join(line for line in lines if not _is_noise(trim(line)))


def _is_noise(line: str) -> bool:
    if not line or _MEDIA_PATH.fullmatch(line):
        return True
    packed = re.sub(r"\s", "", line) if len(line) >= _LONG_BASE64 else ""
    return len(packed) >= _LONG_BASE64 and len(packed) % 4 == 0 and _BASE64.fullmatch(packed) is not None


def _words_in(content: str) -> str:
    """The content itself; of content that is JSON, what it says under the keys for words."""
    if trim(content)[:1] not in ("{", "["):
        return content
    try:
        value = json.loads(content)
    except (RecursionError, ValueError):
        return content
    return "\n".join(_walk(value, 0))


def _walk(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, depth + 1)
    elif isinstance(value, dict):
        yield from (value[key] for key in _WORD_KEYS if isinstance(value.get(key), str))
        for key in _NESTING_KEYS:
            nested = value.get(key)
            yield from _walk(nested, depth + 1) if isinstance(nested, dict | list) else ()


def meaningful(text: str) -> str:
    """What a text says: without lines that are blank or only encode something; of JSON, the texts that it holds."""
    value = _json_in(text)
    if value is not None:
        return told(value)
    lines = (line.rstrip() for line in _DATA_URL.sub(OMITTED, text).split("\n"))
    return trim("\n".join(line for line in lines if not _encodes(trim(line))))


def told(value: Any) -> str:
    """The texts that decoded JSON holds, a line each."""
    return trim("\n".join(_texts(value, 0)))


def without_reasoning(text: str) -> str:
    """The text without what a model thought to itself: at its beginning, on lines of its own, or never closed."""
    return _STANDING_REASONING.sub("", _LEADING_REASONING.sub("", text))


def _encodes(line: str) -> bool:
    if not line or _MEDIA_PATH.fullmatch(line) or _DATA_URL_START.match(line):
        return True
    return len(line) >= _LONG_BASE64 and len(line) % 4 == 0 and _BASE64.fullmatch(line) is not None


def _json_in(text: str) -> Any:
    """The value of a text that is a JSON object or list; None where it is none."""
    bare = trim(text)
    if (bare[:1], bare[-1:]) not in (("{", "}"), ("[", "]")):
        return None
    try:
        return json.loads(bare)
    except (RecursionError, ValueError):
        return None


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > _TOLD_DEPTH:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict) and value.get("type") not in _REASONING_TYPES:
        keys = _WORD_KEYS if value.get("type") in _MEDIA_TYPES else _TOLD_KEYS
        for key in keys:
            yield from _texts(value.get(key), depth + 1)
