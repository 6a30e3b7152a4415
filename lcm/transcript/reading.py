"""The one door for recorded sessions: any format that a reader knows, recognised by content."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from lcm.errors import TranscriptError
from lcm.protocols import TranscriptReader
from lcm.records import Event, Message, Transcript
from lcm.transcript.chat import ChatReader
from lcm.transcript.claude_code import ClaudeCodeReader, beside
from lcm.transcript.codex import CodexReader
from lcm.transcript.foreign import foreign_name
from lcm.transcript.gemini import GeminiReader
from lcm.transcript.identity import UniqueIds
from lcm.transcript.openclaw import OpenClawReader
from lcm.transcript.parquet import ParquetReader
from lcm.transcript.recorded_file import RecordedFile, without_ending
from lcm.transcript.sharegpt import ShareGptReader
from lcm.transcript.swe_agent import SweAgentReader
from lcm.transcript.tau_bench import TauBenchReader

_MAYBE_JSON = (b"", b"{", b"[", b"\x1f")
"""How JSON begins, or what is packed, or nothing yet."""

READERS: tuple[TranscriptReader, ...] = (
    OpenClawReader(),
    ClaudeCodeReader(),
    CodexReader(),
    GeminiReader(),
    ShareGptReader(),
    SweAgentReader(),
    TauBenchReader(),
    ParquetReader(),
    ChatReader(),
)
"""Asked in this order; the first that recognises a file reads it."""

PIECE_ITEMS, PIECE_BYTES = 500, 4 * 2**20
"""A piece ends where it reaches either, so that long messages do not add up."""


def read_transcripts(
    path: Path,
    format: str = "auto",  # noqa: A002  # the word that callers use
    workspace_id: str = "default",
    readers: Sequence[TranscriptReader] = READERS,
) -> list[Transcript]:
    """Read every conversation of a file, plain or gzip, into memory; `read_pieces` does not hold the file.

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


def recorded_files(paths: Sequence[Path], *, strict: bool = False) -> list[RecordedFile]:
    """The files that are named, and those in the folders that are named, in the order of their names.

    A file in a folder is called by its path from there, so that two of the same name stay two. What the reader of a
    session among them reads along with it (its sub-agents) is left to it. Links are followed; a folder that cannot be
    listed stands for its files, so that reading it says why.

    Raises:
        TranscriptError: if there is no such file or folder.
    """
    found: list[RecordedFile] = []
    for path in paths:
        if path.is_dir():
            found += [
                RecordedFile(file, strict=strict, name=str(file.relative_to(path).parent / without_ending(file)))
                for file in _below(path)
            ]
        elif path.is_file():
            found.append(RecordedFile(path, strict=strict))
        else:
            raise TranscriptError(f"{path}: no such file or folder")
    left = _read_along([file.path for file in found]).difference(paths)
    return [file for file in found if file.path not in left]


def is_passed_over(file: RecordedFile, named: Collection[Path]) -> bool:
    """Whether a file in which no transcript was found may be left out: it came with a folder, and is of another kind.

    A file that was named may not; nor one that is damaged, and JSON or Parquet as far as it goes: it may have been a
    transcript.
    """
    if file.path in named:
        return False
    try:
        if file.magic == b"PAR1":
            pq.read_schema(file.path)
        elif foreign_name(file) is None and file.magic.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in _MAYBE_JSON:
            whole = RecordedFile(file.path, strict=True)
            for _ in whole.values() if whole.shape == "lines" else whole.members():
                pass
    except (TranscriptError, pa.ArrowException, OSError):
        return False
    return True


def _below(folder: Path) -> list[Path]:
    """Every file, each folder once: by a path without links where there is one."""
    found: list[Path] = []
    folders, seen = [folder], set[tuple[int, int]]()
    for start in folders:
        for where, inner, names in os.walk(start, onerror=lambda error: found.append(Path(error.filename))):
            status = Path(where).stat()
            if (status.st_dev, status.st_ino) in seen:
                inner.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            inner.sort()
            folders += [link for name in inner if (link := Path(where, name)).is_symlink()]
            found += [file for name in names if (file := Path(where, name)).is_file()]
    return sorted(found)


def _read_along(paths: Collection[Path]) -> set[Path]:
    """Those that are read along with a session among them; a sub-agent's file has none of its own then."""
    left: set[Path] = set()
    for path in sorted(paths, key=lambda path: len(path.parts)):
        if path not in left and (others := beside(path)) and _is_session(path):
            left.update(others)
    return left


def _is_session(path: Path) -> bool:
    try:
        return ClaudeCodeReader().detects(RecordedFile(path))
    except TranscriptError:
        return False


def read_pieces(file: RecordedFile, reader: TranscriptReader, workspace_id: str = "default") -> Iterator[Transcript]:
    """Read a file piece by piece: each continues its conversation where the one before ended.

    What cannot be read stands in `file.quarantine` afterwards.
    """
    ids = UniqueIds()
    heard: dict[str, int] = {}
    piece = _Piece("", 0)
    for recorded in reader.read(file):
        is_full = piece.items >= PIECE_ITEMS or file.bytes_read - piece.from_byte >= PIECE_BYTES
        if recorded.conversation_id != piece.conversation_id or is_full:
            if piece.items:
                yield piece.transcript(workspace_id)
            piece = _Piece(recorded.conversation_id, file.bytes_read)
        position = heard.setdefault(recorded.conversation_id, 0)
        item = recorded.item
        if isinstance(item, Message):
            position = heard[recorded.conversation_id] = position + 1
            item = replace(item, message_id=ids.name(recorded.conversation_id, item.message_id, position))
        else:
            item = replace(item, after=position)
        piece.add(item, recorded.title)
    if piece.items:
        yield piece.transcript(workspace_id)


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
        TranscriptError: if there is no such reader, none recognises the file, or only others than the named one do.
    """
    by_name = {reader.name: reader for reader in readers}
    names = ", ".join(sorted(by_name))
    if name != "auto" and name not in by_name:
        raise TranscriptError(f"lcm does not read the transcript format {name!r}; choose one of: auto, {names}")
    found = next((reader for reader in readers if reader.detects(file)), None)
    if name == "auto":
        if found is None:
            raise TranscriptError(f"{file.path}: {_unknown(file)}; lcm reads: {names}")
        return found
    named = by_name[name]
    if found is not None and found is not named and not named.detects(file):
        raise TranscriptError(f"{file.path}: looks like {found.name}, not like {name}; leave the format to be detected")
    return named


def _unknown(file: RecordedFile) -> str:
    name = foreign_name(file)
    return "not a known transcript format" if name is None else f"{name}, which is not a format that lcm reads"


@dataclass(slots=True)
class _Piece:
    conversation_id: str
    from_byte: int
    title: str | None = None
    messages: list[Message] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @property
    def items(self) -> int:
        return len(self.messages) + len(self.events)

    def add(self, item: Message | Event, title: str | None) -> None:
        self.title = title or self.title
        if isinstance(item, Message):
            self.messages.append(item)
        else:
            self.events.append(item)

    def transcript(self, workspace_id: str) -> Transcript:
        return Transcript(self.conversation_id, tuple(self.messages), workspace_id, self.title, tuple(self.events))
