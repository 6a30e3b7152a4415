"""Prompts that waited in Claude Code's queue: each is delivered once, but may be recorded twice."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lcm.errors import TranscriptError
from lcm.records.conversation import Message
from lcm.transcript.fields import object_in
from lcm.transcript.identity import digest, native_id, recorded_instant

_INTERRUPTED = "[Request interrupted"
_FROM_QUEUE = "queued"
"""The `promptSource` of a prompt that waited until the agent was done; early records name none."""

_AT_ONCE = timedelta(seconds=2)
"""Within which the queue gives a prompt once the agent is done; nobody reads an answer and types the next so fast."""


@dataclass(slots=True)
class PromptQueue:
    """The prompts that were typed while the agent worked, until the user says something else.

    A queue that is emptied when the agent is done gives a prompt as a record of type `user` too. It does not where the
    prompt was taken out for the agent meanwhile (`remove`), nor is it that prompt where one of the same words was typed
    since (`enqueue`), or the record follows the one before it after longer than a queue needs.
    """

    _waiting: dict[int, None] = field(default_factory=dict)
    """Digests of the words of prompts that may be recorded again."""
    _taken: Counter[int] = field(default_factory=Counter)
    """Of those that were taken out before they were recorded; 0 = of unknown words."""
    _ids: set[int] = field(default_factory=set)
    _last: datetime | None = None
    """The instant of the record before."""

    def repeats(self, record: Mapping[str, Any], message: Message | None) -> bool:
        """Take in the next record; whether it says again what stands in a queued prompt.

        Args:
            record: any of the session, in their order.
            message: what is said in it.
        """
        before, self._last = self._last, _instant(record) or self._last
        if message is None:
            self._operate(record)
            return False
        words = digest(message.content.strip())
        if record.get("type") == "attachment":
            self._deliver(words, record)
            return False
        if message.role != "user" or any(part.part_type == "tool" for part in message.parts):
            return False
        if digest(message.message_id) in self._ids:
            return True
        if words in self._waiting and _is_from_queue(record, before, message.created_at):
            del self._waiting[words]
            return True
        if not message.content.startswith(_INTERRUPTED):
            self._waiting.clear()
        return False

    def _operate(self, record: Mapping[str, Any]) -> None:
        if record.get("type") != "queue-operation":
            return
        content, operation = record.get("content"), record.get("operation")
        words = digest(content.strip()) if isinstance(content, str) else 0
        if operation == "enqueue":
            for known in (words, 0):
                self._taken.pop(known, None)  # taken back by the user, if not recorded by now
            self._waiting.pop(words, None)
        elif operation == "remove":
            if not words and self._waiting:
                self._waiting.popitem()
            elif words in self._waiting:
                del self._waiting[words]
            else:
                self._taken[words] += 1

    def _deliver(self, words: int, record: Mapping[str, Any]) -> None:
        if source := native_id(object_in(record, "attachment").get("source_uuid")):
            self._ids.add(digest(source))
        taken = next((known for known in (words, 0) if self._taken[known]), None)
        if taken is None:
            self._waiting[words] = None
        else:
            self._taken[taken] -= 1


def _is_from_queue(record: Mapping[str, Any], before: datetime | None, at: datetime | None) -> bool:
    if source := record.get("promptSource"):
        return bool(source == _FROM_QUEUE)
    return before is None or at is None or at - before <= _AT_ONCE


def _instant(record: Mapping[str, Any]) -> datetime | None:
    with suppress(TranscriptError):
        return recorded_instant(record, ("timestamp",))
    return None
