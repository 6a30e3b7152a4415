"""Which files of folders are transcripts: found, called by their paths, or passed over."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from lcm.errors import TranscriptError
from lcm.given import files_below
from lcm.transcript import agent_database, cline, cursor, opencode, openhands, session_folder
from lcm.transcript.claude_code import ClaudeCodeReader
from lcm.transcript.cline import ClineReader
from lcm.transcript.codex_forks import mark_forks
from lcm.transcript.cursor import CursorReader
from lcm.transcript.database import damage
from lcm.transcript.foreign import foreign_name, torn
from lcm.transcript.openclaw import OpenClawReader
from lcm.transcript.opencode import OpenCodeReader
from lcm.transcript.openhands import OpenHandsReader
from lcm.transcript.parquet import column_names
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import reader_of
from lcm.transcript.recorded_file import RecordedFile, without_ending
from lcm.transcript.session_states import mark_states

_ALONG: tuple[tuple[TranscriptReader, Callable[[Path], list[Path]]], ...] = (
    (OpenClawReader(), agent_database.beside),
    (ClaudeCodeReader(), session_folder.beside),
    (ClineReader(), cline.beside),
    (CursorReader(), cursor.beside),
    (OpenCodeReader(), opencode.beside),
    (OpenHandsReader(), openhands.beside),
)
"""Readers of sessions that lie in several files, and which are read along with one."""


def recorded_files(paths: Sequence[Path], *, strict: bool = False) -> list[RecordedFile]:
    """The files that are named, and those in the folders that are named, in the order of their names.

    A file in a folder is called by its path from there, so that two of the same name stay two. What the reader of a
    session among them reads along with it (its sub-agents) is left to it. Links are followed as far as they stay below
    what was named, and one that leads elsewhere is told; devices and pipes are passed over; a folder that cannot be
    listed stands for its files, so that reading it says why. A file that holds an older state of a session in another
    is told so, and a fork where its parent is.

    Raises:
        TranscriptError: if there is no such file or folder.
    """
    found: list[RecordedFile] = []
    for path in paths:
        if path.is_dir():
            found += [
                RecordedFile(file, strict=strict, name=str(file.relative_to(path).parent / without_ending(file)))
                for file in files_below(path, paths)
            ]
        elif path.is_file():
            found.append(RecordedFile(path, strict=strict))
        elif path.exists():
            raise TranscriptError(f"{path}: neither a file nor a folder, and may never end: name one")
        else:
            raise TranscriptError(f"{path}: no such file or folder")
    left = _read_along([file.path for file in found]).difference(paths)
    kept = [file for file in found if file.path not in left]
    mark_states(kept)
    mark_forks(kept)
    return kept


def is_passed_over(file: RecordedFile, named: Collection[Path]) -> bool:
    """Whether a file in which no transcript was found may be left out: it came with a folder, and is of another kind.

    A file that was named may not; nor a transcript of which nothing could be read; nor what is damaged and JSON,
    Parquet or packed as far as one can tell: it may have been a transcript. An older state of a session is passed over
    wherever it comes from.
    """
    if file.refusal:
        return True
    if file.path in named:
        return False
    try:
        reader_of(file)
    except TranscriptError:
        return _is_of_another_kind(file)
    return False


def _is_of_another_kind(file: RecordedFile) -> bool:
    try:
        if file.magic == b"PAR1":
            return column_names(file) is not None
        return not damage(file) and (foreign_name(file) is not None or not torn(file))
    except TranscriptError:
        return False


def _read_along(paths: Collection[Path]) -> set[Path]:
    """Those that are read along with a session among them; a sub-agent's file has none of its own then."""
    left: set[Path] = set()
    for path in sorted(paths, key=lambda path: len(path.parts)):
        for reader, beside in _ALONG:
            if path not in left and (others := beside(path)) and _is_of(path, reader):
                left.update(others)
    return left


def _is_of(path: Path, reader: TranscriptReader) -> bool:
    try:
        return reader.detects(RecordedFile(path))
    except TranscriptError:
        return False
