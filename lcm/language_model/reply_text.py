"""The words of a response, whichever of the usual shapes it has.

Source: lossless-claw 0.6.3, which collects `text` and `output_text` wherever they lie; the shape of OpenAI's chat
completions is read here besides.
"""

from collections.abc import Iterator
from typing import Any

from lcm.javascript import trim

_WORDS = ("text", "output_text")
_CONTAINERS = ("content", "summary", "output", "message", "response")
_THOUGHTS = ("reasoning", "thinking")


def reply_text(body: Any) -> str:
    """The distinct fragments of a decoded response, trimmed, a line each; empty where it has no words.

    They are looked for in the first choice, else in `content`, else in the whole response. What a model thought before
    it spoke is left out.
    """
    for place in _places(body):
        trimmed = (trim(fragment) for fragment in _fragments(place))
        if fragments := dict.fromkeys(fragment for fragment in trimmed if fragment):
            return "\n".join(fragments)
    return ""


def is_incomplete(body: Any) -> bool:
    """Say whether any part of a decoded response tells that it was cut short."""
    if isinstance(body, list):
        return any(is_incomplete(child) for child in body)
    if not isinstance(body, dict):
        return False
    is_cut = body.get("status") == "incomplete" or body.get("finish_reason") == "length"
    return is_cut or bool(body.get("incomplete_details")) or any(is_incomplete(child) for child in body.values())


def _places(body: Any) -> Iterator[Any]:
    if not isinstance(body, dict):
        return
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict):
        message = choice.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        yield {"text": content} if isinstance(content, str) else message
        yield choice
    yield body.get("content")
    yield body


def _fragments(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for child in node:
            yield from _fragments(child)
    elif isinstance(node, dict) and not _is_thought(node):
        for key in _WORDS:
            yield from _words(node.get(key))
        for key in _CONTAINERS:
            yield from _fragments(node.get(key))


def _words(value: Any) -> Iterator[str]:
    """Text as such, as a list, or inside an object that annotates it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from _words(child)
    elif isinstance(value, dict):
        yield from _words(value.get("value"))
        yield from _words(value.get("text"))


def _is_thought(node: dict[str, Any]) -> bool:
    kind = node.get("type")
    return isinstance(kind, str) and any(word in kind.lower() for word in _THOUGHTS)
