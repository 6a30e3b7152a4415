"""The one door for recorded sessions: any format that a reader knows, recognised by content.

What gives doubt of a file that was read is told: it may be of another format, or of a version that its reader does not
know. Nothing read is never success. Messages that stand again in what was read are copies: a session resumed, forked or
archived writes its records once more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import time
from pathlib import Path
from typing import Literal

from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Role, Transcript
from lcm.transcript.chat import ChatReader, ShareGptReader
from lcm.transcript.claude_code import ClaudeCodeReader
from lcm.transcript.codex import CodexReader
from lcm.transcript.database import damage
from lcm.transcript.editors import ClineReader, CursorReader
from lcm.transcript.exports import ChatGptReader, ClaudeAiReader
from lcm.transcript.fields import Digests, UniqueIds
from lcm.transcript.foreign import container_name, foreign_name, remedy, unknown
from lcm.transcript.gemini import GeminiReader
from lcm.transcript.goose import GooseReader
from lcm.transcript.langchain import LangChainReader
from lcm.transcript.openclaw import OpenClawReader
from lcm.transcript.opencode import OpenCodeReader
from lcm.transcript.parquet import ParquetReader
from lcm.transcript.parts import plain_text, rebuild, rebuild_record
from lcm.transcript.reader import RecordedItem, TranscriptReader
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.runs import OpenHandsReader, SweAgentReader, TauBenchReader

_SILENT_PARTS = frozenset({"tool", "reasoning", "file"})
"""A message that holds one may well be without words."""
_MOST_ASIDE = 0.1
_TIMELESS = "no message says when it was said: decay and recency have nothing to work on"


def in_few_lines(doubts: Sequence[str]) -> list[str]:
    """The doubts of files; where many tell no instant, one line names the first of them and their number."""
    timeless = [doubt for doubt in doubts if doubt.endswith(_TIMELESS)]
    if len(timeless) < 2:
        return list(doubts)
    first = timeless[0].removesuffix(f": {_TIMELESS}")
    others = [doubt for doubt in doubts if not doubt.endswith(_TIMELESS)]
    return [*others, f"{first} and {len(timeless) - 1:,} more: {_TIMELESS}"]


def _judged(items: Iterable[RecordedItem], file: RecordedFile) -> Iterator[RecordedItem]:
    """The items; once they have passed, the file knows whether nothing is said in it, and what gives doubt of it."""
    given = messages = timed = 0
    spoken, worded = Counter[Role](), Counter[Role]()  # messages that should have words, and that have some
    for recorded in items:
        given += 1
        if isinstance(message := recorded.item, Message):
            messages += 1
            timed += message.created_at is not None
            has_words = bool(message.content.strip())
            worded[message.role] += has_words
            is_silent = not has_words and any(part.part_type in _SILENT_PARTS for part in message.parts)
            if message.role in ("user", "assistant"):
                spoken[message.role] += not is_silent
        yield recorded
    aside = len(file.quarantine)
    doubts = [f"no message in it, and {given:,} records of other kinds"] if not messages else []
    doubts += [_TIMELESS] if messages and not timed else []
    for role, said in spoken.items():
        if said and not worded[role]:
            doubts.append(f"none of {said:,} messages of the {role} has words")
    if aside > _MOST_ASIDE * (given + aside):
        doubts.append(f"{aside:,} of {given + aside:,} records were put aside")
    file.is_silent = not worded.total()
    file.doubts += [f"{file.path}: {doubt}" for doubt in doubts]


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
        # What the record itself says, whatever was read beside it.
        is_more = any("recorded" in part.metadata for part in message.parts)
        words = plain_text(rebuild(message)) if is_more else message.content
        return not self._seen.add(repr((message.message_id, message.created_at, message.role, (parts, words))))


READERS: tuple[TranscriptReader, ...] = (
    OpenClawReader(),
    OpenCodeReader(),
    ClaudeCodeReader(),
    ClineReader(),
    CodexReader(),
    CursorReader(),
    GeminiReader(),
    GooseReader(),
    ShareGptReader(),
    SweAgentReader(),
    TauBenchReader(),
    ChatGptReader(),
    ClaudeAiReader(),
    LangChainReader(),
    OpenHandsReader(),
    ParquetReader(),
    ChatReader(),
)
"""Asked in this order; the first that recognises a file reads it."""

BINARY = (b"PAR1", b"SQLi")
"""How the files begin that are read though they are no text."""

_FORMATS = "; lcm reads: "
_ANEW = ": copy it anew if it should hold a session"

PIECE_ITEMS, PIECE_BYTES = 500, 4 * 2**20
"""A piece ends where it reaches either, so that long messages do not add up."""


def read_transcripts(
    path: Path,
    format: str = "auto",  # noqa: A002  # the word that callers use
    workspace_id: str = "default",
    readers: Sequence[TranscriptReader] = READERS,
) -> list[Transcript]:
    """Read every conversation of a file, plain or packed, into memory; `read_pieces` does not hold the file.

    Args:
        path: the file.
        format: the name of a reader; "auto" asks each of them.
        workspace_id: the haystack that the conversations belong to.
        readers: the formats that can be read.

    Raises:
        TranscriptError: if no reader has that name or recognises the file, or anything in it cannot be read.
    """
    file = RecordedFile(path, strict=True)
    return joined(read_pieces(file, reader_of(file, format, readers), workspace_id))


def read_pieces(
    file: RecordedFile, reader: TranscriptReader, workspace_id: str = "default", copies: Copies | None = None
) -> Iterator[Transcript]:
    """Read a file piece by piece: each continues its conversation where the one before ended.

    What cannot be read stands in `file.quarantine` afterwards, what gives doubt of the file in `file.doubts`.

    Args:
        file: what is read.
        reader: of its format.
        workspace_id: the haystack that the conversations belong to.
        copies: the files read before it, of whose messages a copy is no message; None = each is one.
    """
    items = _judged(reader.read(file), file)
    once = items if copies is None else copies.once(items, file)
    yield from in_pieces(once, lambda: file.bytes_read, workspace_id)


def in_pieces(
    items: Iterable[RecordedItem], bytes_read: Callable[[], int], workspace_id: str = "default"
) -> Iterator[Transcript]:
    """Name the messages, place the events between them, and bundle both into pieces.

    Args:
        items: in order; those of several conversations may alternate.
        bytes_read: how much has been read for the items so far.
        workspace_id: the haystack that the conversations belong to.
    """
    ids = UniqueIds()
    message_counts: Counter[str] = Counter()
    held: list[RecordedItem] = []
    from_byte = 0
    for recorded in items:
        name, item = recorded.conversation_id, recorded.item
        is_full = len(held) >= PIECE_ITEMS or bytes_read() - from_byte >= PIECE_BYTES
        if held and (is_full or name != held[0].conversation_id):
            yield _piece(held, workspace_id)
            held = []
        from_byte = from_byte if held else bytes_read()
        if isinstance(item, Message):
            message_counts[name] += 1
            message_id = ids.name(name, item.message_id, message_counts[name])
            held.append(recorded._replace(item=replace(item, message_id=message_id)))
        else:
            held.append(recorded._replace(item=replace(item, after=message_counts[name])))
    if held:
        yield _piece(held, workspace_id)


def _piece(held: list[RecordedItem], workspace_id: str) -> Transcript:
    messages = tuple(one.item for one in held if isinstance(one.item, Message))
    events = tuple(one.item for one in held if isinstance(one.item, Event))
    title = next((one.title for one in reversed(held) if one.title), None)
    return Transcript(held[0].conversation_id, messages, workspace_id, title, events)


def joined(pieces: Iterable[Transcript]) -> list[Transcript]:
    """Put the pieces of each conversation together, in the order of their beginnings."""
    found: dict[str, list[Transcript]] = {}
    for piece in pieces:
        found.setdefault(piece.conversation_id, []).append(piece)
    return [
        replace(
            parts[0],
            messages=tuple(message for part in parts for message in part.messages),
            events=tuple(event for part in parts for event in part.events),
            title=next((part.title for part in reversed(parts) if part.title is not None), None),
        )
        for parts in found.values()
    ]


def reader_of(
    file: RecordedFile, name: str = "auto", readers: Sequence[TranscriptReader] = READERS
) -> TranscriptReader:
    """Choose the reader by its name, or by what the file looks like.

    Raises:
        TranscriptError: if there is no such reader, none recognises the file, or only others than the named one do; or
            if the file is passed over for another that holds all that is said in it.
    """
    if file.refusal:
        raise TranscriptError(file.refusal)
    by_name = {reader.name: reader for reader in readers}
    names = ", ".join(sorted(by_name))
    if name != "auto" and name not in by_name:
        raise TranscriptError(f"lcm does not read the transcript format {name!r}; choose one of: auto, {names}")
    found = next((reader for reader in readers if reader.detects(file)), None)
    if found is not None and file.magic not in BINARY and container_name(file):
        found = None  # the first member of an archive may look like a transcript
    if name == "auto":
        if found is None:
            raise TranscriptError(f"{file.path}: {_unread(file)}{_FORMATS}{names}")
        return found
    named = by_name[name]
    if found is not None and found is not named and not named.detects(file):
        raise TranscriptError(f"{file.path}: looks like {found.name}, not like {name}; leave the format to be detected")
    return named


def without_formats(reason: str) -> str:
    """Why a file was passed over, without the list of formats, which is for files that somebody named."""
    return reason.partition(_FORMATS)[0]


def nothing_in(path: Path) -> str:
    """Tell of a file that its reader recognises, and gives nothing of."""
    return f"{path}: holds nothing that can be read{_ANEW}"


def _unread(file: RecordedFile) -> str:
    if not file.path.stat().st_size:
        return f"an empty file{_ANEW}"
    if told := damage(file):
        return told
    name = foreign_name(file)
    if name is None and file.is_long:
        return "begins with a value of more than 16 Mi characters, which is not read: cut it into several"
    if name is None:
        return unknown(file)
    return f"{name}, which is not a format that lcm reads{remedy(name)}"
