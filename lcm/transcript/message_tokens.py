"""How many tokens recorded messages cost: their texts, their images, and what their sessions recorded.

An image is a block that names itself one (`image`, `input_image`, `image_url` ...) or has a media type of images, and
holds or points to the picture; an `image_urls` holds several. A data URL of an image is one wherever it stands, in
words too: SWE-agent writes its screenshots so, and sends them as images. What tools are called with is text.

Of a recorded usage the *output* is a reply's own size, thoughts included, whether or not the record shows them. The
input is the whole context that was sent, with a system prompt and tools that no message holds, and says nothing of one
message; it is not read.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lcm.encoding import to_json
from lcm.protocols.models import TakesRecorded, TokenEstimator
from lcm.records.conversation import Event, Message, Part
from lcm.transcript.fields import object_in, text_in
from lcm.transcript.large_files import compacted
from lcm.transcript.parts import CALL_TYPES, block_type, is_translated

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
    told = [message.content, message.envelope.get("native"), [_recorded(part) for part in message.parts]]
    if "image" not in repr(told):  # as a type, a media type or a data URL names it: most messages hold none
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


_HOLDERS = ("metadata", "response_metadata", "info", "metrics")
_USAGE_KEYS = ("usage", "usage_metadata", "usageMetadata", "token_usage", "tokens")
_OUTPUT_KEYS = (
    "output_tokens", "completion_tokens", "outputTokens", "completionTokens", "candidatesTokenCount",
    "output", "completion",
)  # fmt: skip
_THOUGHTS_KEYS = ("thoughts", "thoughtsTokenCount")


class Reply(NamedTuple):
    """Messages that one answer of a model is recorded as, and how many tokens it had."""

    places: tuple[int, ...]
    """Of its messages among those that were asked of, ascending."""
    tokens: int
    """Recorded, at least 1."""


def replies(messages: Sequence[Message], events: Iterable[Event] = (), first: int = 0) -> list[Reply]:
    """Find the answers whose length is recorded, in the message itself or in an event behind it.

    Claude Code writes an answer in pieces under one id, of which the last has the whole number. Codex writes the
    number as an event behind the items of an answer.

    Args:
        messages: of one conversation, in order.
        events: of the same stretch of it.
        first: how many messages of the conversation stand before these.
    """
    by_answer: dict[str, Reply] = {}
    for place, message in enumerate(messages):
        if message.role == "assistant" and (tokens := _output(message)):
            # The id that the pieces of an answer share; it names no place, as an id that is a number would.
            named = text_in(message.envelope.get("native"), "id")
            key = f"id {named}" if named else f"{place}"
            places, before = by_answer.get(key, Reply((), 0))
            by_answer[key] = Reply((*places, place), max(before, tokens))
    told = {place for reply in by_answer.values() for place in reply.places}
    return [*by_answer.values(), *_told_behind(messages, events, first, told)]


def _output(message: Message) -> int:
    """The output that the record of a message names; 0 where it names none."""
    records = [message.envelope.get(key) for key in ("native", "record")]
    places = [place for record in records for place in (record, *(object_in(record, key) for key in _HOLDERS))]
    found = (_number(object_in(place, key)) for place in places if place for key in _USAGE_KEYS)
    return next(filter(None, found), 0)


def _number(usage: Mapping[str, Any]) -> int:
    """The output with its thoughts, which Gemini and OpenCode count beside it and all others in it."""
    beside = (*_THOUGHTS_KEYS, "reasoning") if isinstance(usage.get("cache"), dict) else _THOUGHTS_KEYS
    return _first(usage, _OUTPUT_KEYS) + _first(usage, beside)


def _first(usage: Mapping[str, Any], keys: Iterable[str]) -> int:
    counts = (usage[key] for key in keys if isinstance(usage.get(key), int) and not isinstance(usage[key], bool))
    return next((tokens for tokens in counts if tokens > 0), 0)


def _told_behind(messages: Sequence[Message], events: Iterable[Event], first: int, told: set[int]) -> Iterator[Reply]:
    """The answers that an event counts: what was answered since the last such event."""
    start, total = 0, None
    for event in events:
        payload = object_in(event.native, "payload")
        info = payload.get("info") if payload.get("type") == "token_count" else None
        if not isinstance(info, dict) or info.get("total_token_usage", info) == total:
            continue  # told again, with other limits
        stop, total = min(max(start, event.after - first), len(messages)), info.get("total_token_usage", info)
        said = tuple(place for place in range(start, stop) if messages[place].role == "assistant" and place not in told)
        if said and (tokens := _number(object_in(info, "last_token_usage"))):
            yield Reply(said, tokens)
        start = stop


Rendering = Callable[[Message], str]
"""The text whose tokens a message is counted by."""


class Usage(NamedTuple):
    """Messages whose tokens a session recorded, and what the estimator says of the same ones."""

    messages: int = 0
    recorded: int = 0
    estimated: int = 0

    def plus(self, other: "Usage") -> "Usage":
        return Usage(*(one + more for one, more in zip(self, other, strict=True)))


def message_tokens(
    messages: Sequence[Message],
    rendered: Rendering,
    estimator: TokenEstimator,
    events: Iterable[Event] = (),
    first: int = 0,
) -> list[int]:
    """Count what each message costs: its text, and each of its images by the flat price; or what its session recorded.

    Args:
        messages: of one conversation, in order.
        rendered: the text of a message.
        estimator: counts texts; where it has no price of an image, the text of one is counted like any other. One that
            takes recorded numbers shares that of an answer among its messages.
        events: what was recorded beside these messages.
        first: how many messages of the conversation stand before these.
    """
    counts = estimated_tokens(messages, rendered, estimator)
    if isinstance(estimator, TakesRecorded):
        for reply in replies(messages, events, first):
            shares = estimator.shares(reply.tokens, [counts[place] for place in reply.places])
            for place, share in zip(reply.places, shares, strict=True):
                counts[place] = share
    return counts


def estimated_tokens(messages: Sequence[Message], rendered: Rendering, estimator: TokenEstimator) -> list[int]:
    """Count as `message_tokens` does, whatever was recorded."""
    if estimator.image_tokens is None:
        return estimator.count([rendered(message) for message in messages])
    bare = [without_images(message) for message in messages]
    texts = estimator.count([rendered(message) for message, _ in bare])
    return [count + images * estimator.image_tokens for count, (_, images) in zip(texts, bare, strict=True)]


def usage_of(
    messages: Sequence[Message], rendered: Rendering, estimator: TokenEstimator, events: Iterable[Event], first: int
) -> Usage:
    """Hold the estimator against what was recorded; as for `message_tokens`."""
    found = replies(messages, events, first)
    said = [messages[place] for reply in found for place in reply.places]
    recorded = sum(reply.tokens for reply in found)
    return Usage(len(said), recorded, sum(estimated_tokens(said, rendered, estimator)) if said else 0)
