"""The contract of a session format, and the sessions that are JSON objects with lists: alone in a file, in an array, or
one a line."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
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


class Element(NamedTuple):
    """A value of one of a session's lists."""

    line: int
    key: str
    number: int
    """From 1, within its list."""
    value: Any

    @property
    def place(self) -> str:
        """What a complaint about it begins with."""
        return f"{well_formed(self.key)} {self.number}: "


class Session(NamedTuple):
    """An object whose lists come element by element: those of a document are never all in memory."""

    line: int
    header: dict[str, Any]
    """The object with null for each list that is not empty."""
    lists: frozenset[str]
    """The keys of those lists."""
    elements: Iterable[Element]

    def items(
        self,
        file: RecordedFile,
        conversation_id: str,
        said: Mapping[str, Callable[[Any, str], Message | Event]],
        title: str | None = None,
        branch: Callable[[Message], str] = lambda _: "",
    ) -> Iterator[RecordedItem]:
        """The header as an event of type `session`, and the elements of the lists: messages, or events named by them.

        Args:
            file: puts an element aside that cannot be read.
            conversation_id: of all of them.
            said: makes an item of an element, by the key of its list, given the conversation; others are events.
            title: the conversation's.
            branch: what a message that was left adds to the conversation's id.
        """
        yield RecordedItem(conversation_id, Event("session", self.header), title)
        for element in self.elements:
            with file.record(element.line, element.place):
                named = Event(well_formed(element.key), element.value)
                item = said[element.key](element.value, conversation_id) if element.key in said else named
                suffix = branch(item) if isinstance(item, Message) else ""
                yield RecordedItem(conversation_id + suffix, item, title)


def sessions(file: RecordedFile) -> Iterator[Session]:
    """Give the objects of the file; a value of another kind is put aside."""
    if isinstance(file.first, dict):
        yield document(file)
        return
    for line, value in file.values():
        with file.record(line):
            if not isinstance(value, dict):
                raise TranscriptError(f"expected a session, a JSON object, got {type(value).__name__}")
            yield session_of(line, value)


def document(file: RecordedFile) -> Session:
    """One object over many lines, read twice: first for what stands beside its lists."""
    header: dict[str, Any] = {}
    lists = set()
    for member in RecordedFile(file.path).members():
        if member.key is not None:
            header[member.key] = None if member.is_element else member.value
            if member.is_element:
                lists.add(member.key)
    return Session(1, header, frozenset(lists), _streamed(file))


def _streamed(file: RecordedFile) -> Iterator[Element]:
    key, number = "", 0
    for member in file.members():
        if member.is_element and member.key is not None:
            key, number = member.key, number + 1 if member.key == key else 1
            yield Element(member.line, key, number, member.value)


def session_of(line: int, value: dict[str, Any]) -> Session:
    """An object that one line or one element holds whole."""
    lists = {key: held for key, held in value.items() if isinstance(held, list) and held}
    elements = (
        Element(line, key, number, element)
        for key, held in lists.items()
        for number, element in enumerate(held, start=1)
    )
    return Session(line, value | dict.fromkeys(lists), frozenset(lists), elements)


class ConversationIds:
    """Names the conversations of one file; a name that was given before gets a number behind it."""

    def __init__(self) -> None:
        self._copies: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        copies = self._copies.get(wanted, 0) + 1
        name = wanted if copies == 1 else f"{wanted}#{copies}"
        while copies > 1 and name in self._copies:
            copies += 1
            name = f"{wanted}#{copies}"
        self._copies[wanted] = copies
        self._copies.setdefault(name, 1)
        return name
