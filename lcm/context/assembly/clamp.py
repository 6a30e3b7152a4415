"""A context cut to its budget by what its messages cost as they are sent: as JSON, with all that stands around words.

Source: lossless-claw 0.15.3.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lcm.checks import check_range
from lcm.context.assembly.shown_items import is_blank
from lcm.javascript import stringify, trim, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.transcript.rendering import RuntimeMessage, blocks_in

_PAYLOAD_TOKENS = 1600
_PAYLOAD_UNITS = 4096
"""A shorter text is counted as it is."""
_PAYLOAD_KEYS = {"data", "image", "imageData", "image_data", "base64", "bytes", "source"}
_LOOKED_AT = 512
_BASE64 = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=\r\n]+", re.DOTALL)
_OPAQUE = "[opaque binary payload]"


class Clamped(NamedTuple):
    """The messages that stay of a context, by their places, and what they cost as they are sent."""

    kept: tuple[int, ...]
    tokens: int
    tokens_before: int
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Clamp:
    """Cuts a context that costs more than its budget as it is sent to `fraction` of it, the fresh tail included.

    The newest messages stay, at least one, without results that have lost their calls; with the newest of a user where
    none of a user is left; and without answers at the end, unless nothing else is left.
    """

    fraction: float = 0.9
    keeps_answers: bool = False
    """Answers at the end stay unless they are blank: a model is asked by a prompt of its own behind them."""

    def __post_init__(self) -> None:
        check_range(self, "fraction", gt=0, le=1)

    def cut(self, messages: Sequence[RuntimeMessage], budget_tokens: int, estimator: TokenEstimator) -> Clamped:
        costs = serialized_tokens(messages, estimator)
        before = sum(costs)
        if before <= max(1, budget_tokens):
            return Clamped(tuple(range(len(messages))), before, before, is_cut=False)
        kept = self._kept(messages, costs, max(1, math.floor(budget_tokens * self.fraction)))
        stays = list(kept)
        while stays and self._is_idle(messages[stays[-1]]):
            stays.pop()
        stays = stays or kept
        return Clamped(tuple(stays), sum(costs[place] for place in stays), before, is_cut=True)

    def _kept(self, messages: Sequence[RuntimeMessage], costs: Sequence[int], room: int) -> list[int]:
        first = len(messages) - 1
        room -= costs[first]
        while first > 0 and costs[first - 1] <= room:
            first -= 1
            room -= costs[first]
        while first < len(messages) - 1 and messages[first]["role"] == "toolResult":
            first += 1
        kept = list(range(first, len(messages)))
        if not any(messages[place]["role"] == "user" for place in kept):
            kept = [place for place in range(first) if messages[place]["role"] == "user"][-1:] + kept
        return kept

    def _is_idle(self, message: RuntimeMessage) -> bool:
        if message["role"] != "assistant":
            return False
        content = message["content"]
        is_empty = not trim(content) if isinstance(content, str) else all(map(is_blank, blocks_in(message)))
        return is_empty or not self.keeps_answers


def serialized_tokens(messages: Sequence[RuntimeMessage], estimator: TokenEstimator) -> list[int]:
    """What each message costs as JSON, a long payload that is no text a fixed price."""
    found = [_without_payloads(message, "") for message in messages]
    counts = estimator.count([stringify(message) for message, _ in found])
    return [count + _PAYLOAD_TOKENS * payloads for count, (_, payloads) in zip(counts, found, strict=True)]


def _without_payloads(value: Any, key: str) -> tuple[Any, int]:
    """A value with a note in the place of each payload, and how many those were."""
    if isinstance(value, str):
        return (_OPAQUE, 1) if _is_payload(value, key) else (value, 0)
    if isinstance(value, Mapping):
        items = {name: _without_payloads(child, name) for name, child in value.items()}
        return {name: child for name, (child, _) in items.items()}, sum(count for _, count in items.values())
    if isinstance(value, list | tuple):
        listed = [_without_payloads(child, key) for child in value]
        return [child for child, _ in listed], sum(count for _, count in listed)
    return value, 0


def _is_payload(text: str, key: str) -> bool:
    if 2 * len(text) < _PAYLOAD_UNITS or utf16_length(text) < _PAYLOAD_UNITS:
        return False
    return text.startswith("data:") or (key in _PAYLOAD_KEYS and _BASE64.fullmatch(text[:_LOOKED_AT]) is not None)
