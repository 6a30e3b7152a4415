"""Messages that stand again in what was read: a session resumed, forked or archived writes its records once more."""

from collections.abc import Iterable, Iterator
from datetime import time
from pathlib import Path
from typing import Literal

from lcm.records.conversation import Event, Message
from lcm.transcript.identity import Digests
from lcm.transcript.parts import rebuild, rebuild_record
from lcm.transcript.plain_text import plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile

CopiesRule = Literal["once", "all"]
"""What becomes of a copy: it is an event beside the messages, or a message like others."""

_CHANCELESS = 16
"""Characters."""


class Holders:
    """Of each conversation the first file that holds it, of files that are read one after the other."""

    def __init__(self) -> None:
        self._first: dict[str, Path] = {}

    def is_first(self, conversation_id: str, path: Path) -> bool:
        return self._first.setdefault(conversation_id, path) == path

    def second(self, conversation_id: str, path: Path) -> str:
        """Say of another file why the conversation is not read of it too."""
        return (
            f"{path}: conversation {conversation_id!r} is also in {self._first[conversation_id]}: "
            "name one of the two files"
        )


class Copies:
    """The messages of files that are read one after the other, as digests: those that come again are copies.

    A copy has the recorded id, the recorded instant and the content of a message before it, in whichever conversation
    that stands. Without an instant, or with a date alone, its id must be as long as those that no two messages share by
    chance. Of a conversation that another file holds too nothing is a copy: that is another state of it.
    """

    def __init__(self) -> None:
        self._seen = Digests()
        self._holders = Holders()
        self.ids: dict[str, str] = {}
        """What would be a copy's message id, and its recorded id, by which the original is found."""

    def once(self, items: Iterable[RecordedItem], file: RecordedFile) -> Iterator[RecordedItem]:
        """The items; a copy is an event of type `copy` with the same record, and counted in `file.copies`."""
        for recorded in items:
            message = recorded.item
            is_first_state = self._holders.is_first(recorded.conversation_id, file.path)
            if isinstance(message, Message) and (recorded.is_copy or (is_first_state and self._is_copy(message))):
                file.copies += 1
                if message.message_id:
                    self.ids[f"{recorded.conversation_id}:{message.message_id}"] = message.message_id
                yield recorded._replace(item=Event("copy", rebuild_record(message)))
            else:
                yield recorded

    def _is_copy(self, message: Message) -> bool:
        is_timed = message.created_at is not None and message.created_at.time() != time.min  # a date is no instant
        if len(message.message_id) < (1 if is_timed else _CHANCELESS):
            return False
        parts = [
            (part.part_type, part.text, part.tool_call_id, part.tool_name, part.tool_input, part.tool_output)
            for part in message.parts
        ]
        told = (parts, _recorded_words(message))
        return not self._seen.add(repr((message.message_id, message.created_at, message.role, told)))


def _recorded_words(message: Message) -> str:
    """What the record itself says, whatever was read beside it."""
    is_more = any("recorded" in part.metadata for part in message.parts)
    return plain_text(rebuild(message)) if is_more else message.content
