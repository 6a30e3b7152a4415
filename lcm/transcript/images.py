"""Images in recorded messages, however their format writes them, and messages without them.

An image is a block that names itself one (`image`, `input_image`, `image_url` ...) or has a media type of images, and
holds or points to the picture; an `image_urls` holds several. A data URL of an image is one wherever it stands, in
words too: SWE-agent writes its screenshots so, and sends them as images. What tools are called with is text.
"""

import json
import re
from dataclasses import replace
from typing import Any

from lcm.encoding import to_json
from lcm.records.conversation import Message, Part
from lcm.transcript.large_files import compacted
from lcm.transcript.parts import is_translated
from lcm.transcript.plain_text import CALL_TYPES, block_type

_IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "output_image", "image_asset_pointer"})
_MEDIA_TYPE_KEYS = ("mimeType", "mime_type", "mediaType", "media_type", "mime")
_WRAPPER_KEYS = ("inlineData", "inline_data", "fileData", "file_data")
_PICTURE_KEYS = (
    "source", "data", "base64", "image", "image_url", "image_urls", "url", "uri", "fileUri", "file_uri",
    "file", "file_id", "fileId", "asset_pointer",
)  # fmt: skip
_DATA_URL = re.compile(r"data:image/[\w.+-]+(?:;[\w.=+-]+)*;base64,[\w+/=-]*")


def without_images(message: Message) -> tuple[Message, int]:
    """Take the images out of a message, as a context would show it, and say how many these are."""
    if not _may_hold([message.content, message.envelope.get("native"), [_recorded(part) for part in message.parts]]):
        return message, 0
    shown = compacted(message)
    native, in_record = _bare(shown.envelope.get("native"))
    is_shown_by_parts = native is None or is_translated(message)
    images = 0 if is_shown_by_parts else in_record
    content, in_content = _bare_text(shown.content)
    slots = shown.envelope.get("slots", {})
    parts: list[Part] = []
    for part in shown.parts:
        raw, here = _bare(_recorded(part))
        is_counted = "slot" in part.metadata or is_shown_by_parts
        images += here if is_counted else 0  # what no slot holds stands in the envelope as well
        if not (images_in(part.metadata.get("raw")) and slots.get(part.metadata.get("slot")) == "list"):
            parts.append(_bare_part(part, raw))
    if not parts and native is None:
        images = in_content
    if not images:
        return message, 0
    envelope = {**shown.envelope, "native": native} if native is not None else shown.envelope
    return replace(shown, content=content, parts=tuple(parts), envelope=envelope, files=()), images


def images_in(block: object) -> int:
    """How many images a block is: 0 where it is none."""
    if not isinstance(block, dict):
        return 0
    held = next((block[key] for key in _WRAPPER_KEYS if isinstance(block.get(key), dict)), block)
    media_type = next((held[key] for key in _MEDIA_TYPE_KEYS if isinstance(held.get(key), str)), "")
    is_named = bool(_IMAGE_TYPES & {block_type(block), str(block.get("content_type"))})
    if not (is_named or media_type.startswith("image/")) or not any(held.get(key) for key in _PICTURE_KEYS):
        return 0
    several = held.get("image_urls")
    return len(several) if isinstance(several, list) else 1


def _recorded(part: Part) -> Any:
    return part.metadata.get("raw", part.text)


def _may_hold(value: Any) -> bool:
    """Whether something in a value names an image, as a type, a media type or a data URL does: most do not."""
    return "image" in repr(value)


def _bare(value: Any) -> tuple[Any, int]:
    """A value without its images, and how many these are; as it is where there are none."""
    if images := images_in(value):
        return {}, images
    match value:
        case str():
            return _bare_text(value)
        case list():
            found = [_bare(one) for one in value if not images_in(one)]
            images = sum(map(images_in, value)) + sum(count for _, count in found)
            return ([bare for bare, _ in found], images) if images else (value, 0)
        case dict() if block_type(value) not in CALL_TYPES:
            held = {key: _bare(one) for key, one in value.items()}
            images = sum(count for _, count in held.values())
            return ({key: bare for key, (bare, _) in held.items()}, images) if images else (value, 0)
    return value, 0


def _bare_text(text: str) -> tuple[str, int]:
    """Text without its data URLs; as JSON, which results may be, without its blocks."""
    if text[:1] in ("{", "[") and ('"image' in text or "image/" in text):
        try:
            value, images = _bare(json.loads(text))
        except (RecursionError, ValueError):
            images = 0
        if images:
            return to_json(value), images
    return _DATA_URL.subn("", text) if "data:image/" in text else (text, 0)


def _bare_part(part: Part, raw: Any) -> Part:
    text, output = (None if one is None else _bare_text(one)[0] for one in (part.text, part.tool_output))
    metadata = {**part.metadata, "raw": raw} if "raw" in part.metadata else part.metadata
    return replace(part, text=text, tool_output=output, metadata=metadata)
