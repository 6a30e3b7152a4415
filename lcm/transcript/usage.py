"""What a session recorded of its tokens: how long its replies were, by the count of who billed them.

Of a recorded usage the *output* is a reply's own size, thoughts included, whether or not the record shows them. The
input is the whole context that was sent, with a system prompt and tools that no message holds, and says nothing of one
message; it is not read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lcm.records.conversation import Event, Message

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
            key = _answer(message) or f"{place}"
            places, before = by_answer.get(key, Reply((), 0))
            by_answer[key] = Reply((*places, place), max(before, tokens))
    told = {place for reply in by_answer.values() for place in reply.places}
    return [*by_answer.values(), *_told_behind(messages, events, first, told)]


def _answer(message: Message) -> str:
    """The id that the pieces of an answer share; it names no place, as an id that is a number would."""
    native = message.envelope.get("native")
    named = native.get("id") if isinstance(native, Mapping) else None
    return f"id {named}" if isinstance(named, str) and named else ""


def _output(message: Message) -> int:
    """The output that the record of a message names; 0 where it names none."""
    records = (message.envelope.get(key) for key in ("native", "record"))
    return next((tokens for record in records if (tokens := _output_of(record))), 0)


def _output_of(record: Any) -> int:
    if not isinstance(record, Mapping):
        return 0
    places = (record, *(record[key] for key in _HOLDERS if isinstance(record.get(key), Mapping)))
    usages = (place[key] for place in places for key in _USAGE_KEYS if isinstance(place.get(key), Mapping))
    return next((tokens for usage in usages if (tokens := _number(usage))), 0)


def _number(usage: Mapping[str, Any]) -> int:
    """The output with its thoughts, which Gemini and OpenCode count beside it and all others in it."""
    beside = (*_THOUGHTS_KEYS, "reasoning") if isinstance(usage.get("cache"), Mapping) else _THOUGHTS_KEYS
    return _first(usage, _OUTPUT_KEYS) + _first(usage, beside)


def _first(usage: Mapping[str, Any], keys: Iterable[str]) -> int:
    found = (usage.get(key) for key in keys)
    return next(
        (tokens for tokens in found if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0), 0
    )


def _told_behind(messages: Sequence[Message], events: Iterable[Event], first: int, told: set[int]) -> Iterator[Reply]:
    """The answers that an event counts: what was answered since the last such event."""
    start, total = 0, None
    for event in events:
        info = _counted(event)
        if info is None or info.get("total_token_usage", info) == total:
            continue  # told again, with other limits
        stop, total = min(max(start, event.after - first), len(messages)), info.get("total_token_usage", info)
        said = tuple(place for place in range(start, stop) if messages[place].role == "assistant" and place not in told)
        last = info.get("last_token_usage")
        if said and isinstance(last, Mapping) and (tokens := _number(last)):
            yield Reply(said, tokens)
        start = stop


def _counted(event: Event) -> Mapping[str, Any] | None:
    payload = event.native.get("payload") if isinstance(event.native, Mapping) else None
    info = payload.get("info") if isinstance(payload, Mapping) and payload.get("type") == "token_count" else None
    return info if isinstance(info, Mapping) else None
