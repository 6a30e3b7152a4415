"""The contract of a session format."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from lcm.records.conversation import Event, Message
from lcm.transcript.recorded_file import RecordedFile


class RecordedItem(NamedTuple):
    """One message or event that a transcript reader gives, with the conversation that it belongs to."""

    conversation_id: str
    item: Message | Event
    title: str | None = None
    """The conversation's, where it is known by now."""
    is_copy: bool = False
    """It stands in another of the files that are read together, which its format does not tell by ids."""


class TranscriptReader(Protocol):
    """The reader of one transcript format.

    Laws: every record of the file is a message, an event, or put aside by `file.record` with its line and the reason;
    no file raises anything else. `rebuild_record` of a message, and an event's `native`, are exactly what was recorded;
    order, instants and tool calls are kept. Reading twice gives the same. Of what grows with a file only digests
    of ids are held, and what names its conversations.
    """

    @property
    def name(self) -> str:
        """What `format` calls it."""
        ...

    def detects(self, file: RecordedFile) -> bool:
        """Say whether the file looks like this format, by `file.first`."""
        ...

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        """Give the messages and events of every conversation, in the order of the file.

        A message carries its recorded id, or the empty text where there is none; an event's place is filled in by
        `read_pieces`.
        """
        ...
