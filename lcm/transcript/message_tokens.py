"""How many tokens recorded messages cost."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lcm.protocols.models import TakesRecorded, TokenEstimator
from lcm.records.conversation import Event, Message
from lcm.transcript.images import without_images
from lcm.transcript.usage import replies

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
