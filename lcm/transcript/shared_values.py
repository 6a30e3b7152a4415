"""Values that many messages repeat, held once: of a hundred thousand messages they are most of what memory holds."""

from collections.abc import Mapping
from dataclasses import replace
from sys import intern
from typing import Any, cast

from lcm.records.conversation import Message, Part, PartType, Role

_LONGEST = 400
"""Letters of a value that is looked up: longer ones seldom repeat."""
_MOST = 20_000
"""Values that are remembered."""


class SharedValues:
    """Makes messages equal to those given, in which equal envelopes, metadata, names and words are one object."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, Any]] = {}

    def message(self, message: Message) -> Message:
        """The message, sharing what it has in common with those before it."""
        return replace(
            message,
            role=cast(Role, intern(message.role)),
            session_id=intern(str(message.session_id)),
            author=None if message.author is None else intern(str(message.author)),
            parts=tuple(self._part(part, message.content) for part in message.parts),
            envelope=self._one(message.envelope),
        )

    def _part(self, part: Part, content: str) -> Part:
        return replace(
            part,
            part_type=cast(PartType, intern(part.part_type)),
            text=content if part.text == content else part.text,
            tool_name=None if part.tool_name is None else intern(str(part.tool_name)),
            metadata=self._one(part.metadata),
        )

    def _one(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        told = repr(value)  # tells True from 1, and the order of keys
        if len(told) > _LONGEST:
            return value
        if len(self._known) >= _MOST:
            return self._known.get(told, value)
        return self._known.setdefault(told, value)
