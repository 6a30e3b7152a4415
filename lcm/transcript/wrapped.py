"""What people said in texts around which a host put tags, and beside which it tells the model more."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lcm.transcript.parts import DecomposedMessage, decompose


def within(text: str, tag: str) -> list[str]:
    """What stands between a tag and its end, each time."""
    begun = (piece.partition(f"</{tag}>") for piece in text.split(f"<{tag}>")[1:])
    return [inside for inside, end, _ in begun if end]


def without(text: str, tag: str) -> str:
    """What stands outside of a tag and its end; a tag without an end is text."""
    before, *begun = text.split(f"<{tag}>")
    pieces = (piece.partition(f"</{tag}>") for piece in begun)
    return before + "".join(after if end else f"<{tag}>{inside}" for inside, end, after in pieces)


def unwrapped(native: Mapping[str, Any], role: str, said: Callable[[str], str]) -> DecomposedMessage:
    """Decompose a message whose words are what `said` makes of each of its texts; the envelope has it as recorded."""
    found = decompose({**native, "content": _told(native.get("content"), said)}, role)
    # No part stands in the place of a block: the blocks are in the envelope.
    kept = ({key: value for key, value in part.metadata.items() if key != "slot"} for part in found.parts)
    parts = tuple(replace(part, metadata=metadata) for part, metadata in zip(found.parts, kept, strict=True))
    return found._replace(parts=parts, envelope={"native": dict(native), "slots": {}})


def _told(content: Any, said: Callable[[str], str]) -> Any:
    match content:
        case str():
            return said(content)
        case list():
            return [_told(block, said) for block in content]
        case {"type": "text", "text": str(text)}:
            return {**content, "text": said(text)}
    return content
