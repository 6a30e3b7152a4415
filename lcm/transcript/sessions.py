"""Sessions that are JSON objects with lists: alone in a file, in an array, or one a line."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lcm.encoding import is_well_formed, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Message, Part
from lcm.transcript.identity import native_id, said_at, said_beside
from lcm.transcript.parts import decompose
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.ui_message import is_ui_message, with_ui_parts


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
    elements: Iterator[Element]


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


def run_name(run: Mapping[str, Any], file: RecordedFile) -> str:
    """What names a run of an agent: its file, and behind that the `instance_id` that the file is not named by."""
    instance = native_id(run.get("instance_id"))
    return file.name if instance in ("", file.name) else f"{file.name}/{instance}"


def chat_message(native: object, session_id: str, started_at: datetime | None = None) -> Message:
    """Read one message of OpenAI-style chat, or of the AI SDK.

    Args:
        native: what was recorded.
        session_id: the session's, where the message names none.
        started_at: when it was said, where the message names no instant.

    Raises:
        TranscriptError: if it is not an object with a `role`, or its instant cannot be read.
    """
    if not isinstance(native, dict) or not isinstance(native.get("role"), str):
        raise TranscriptError("expected a message, an object with a `role`")
    said = decompose(native)
    created_at = said_at(native)
    if is_ui_message(native):
        said, created_at = with_ui_parts(native, said), created_at or said_beside(native, "metadata")
    author = native.get("name")
    return Message(
        message_id=native_id(native.get("id")),
        role=said.role,
        content=said.content,
        session_id=native_id(native.get("session_id")) or session_id,
        created_at=created_at or started_at,
        # The name on a tool's message is the tool's; its parts keep it.
        author=well_formed(author) if isinstance(author, str) and said.role != "tool" else None,
        parts=said.parts,
        envelope=said.envelope,
    )


def value_part(slot: str, value: object) -> Part:
    """The part of a value that stands alone under a key; `rebuild` puts it back."""
    if not isinstance(value, str):
        return Part("agent", metadata={"slot": slot, "raw": value})
    metadata = {"slot": slot} if is_well_formed(value) else {"slot": slot, "raw": value}
    return Part("text", well_formed(value), metadata=metadata)


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
    lists = frozenset(key for key, held in value.items() if isinstance(held, list) and held)
    header = {key: None if key in lists else held for key, held in value.items()}
    elements = (
        Element(line, key, number, element)
        for key, held in value.items()
        if key in lists
        for number, element in enumerate(held, start=1)
    )
    return Session(line, header, lists, elements)
