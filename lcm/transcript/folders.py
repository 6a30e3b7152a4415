"""Which files of folders are transcripts: found, called by their paths, or passed over.

Several files may hold states of one OpenClaw session: checkpoints, what a reset or an import left, archives. A name
only makes a file worth a look. What it is, its header and its messages say: of the states of one session the one whose
last record is the newest is read, an agent's database before any file, and of two that end alike the one that is named
as the session alone. Another all of whose messages newer ones hold is passed over; else what it alone holds is read.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from lcm.errors import TranscriptError
from lcm.given import files_below
from lcm.transcript import editors, openclaw, opencode, runs, session_folder
from lcm.transcript.claude_code import ClaudeCodeReader
from lcm.transcript.codex import mark_forks
from lcm.transcript.database import damage, snapshot
from lcm.transcript.fields import Digests, known_instant
from lcm.transcript.foreign import foreign_name, torn
from lcm.transcript.openclaw import DATABASES, OpenClawReader, identity, is_agent_database, is_message, records_of
from lcm.transcript.parquet import column_names
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import reader_of
from lcm.transcript.recorded_file import RecordedFile, without_ending

_OLDER = re.compile(r"\.checkpoint\.[\w-]+\.jsonl|\.jsonl\.\w+[.-]")
_NEVER = datetime.min.replace(tzinfo=UTC)


class _State(NamedTuple):
    is_database: bool
    last: datetime
    """Of its records."""
    is_named_current: bool
    messages: int
    file: RecordedFile


def mark_states(files: Sequence[RecordedFile]) -> None:
    """Tell each file that holds an older state of a session which of the files hold newer ones (`newer`), and each in
    which nothing more is said that it is passed over (`refusal`)."""
    databases = [file for file in files if file.path.suffix in DATABASES and is_agent_database(file)]
    older = {file.path: file for file in files if _OLDER.search(file.path.name)}
    if not databases and not older:
        return
    found: dict[str, list[RecordedFile]] = {}
    for database in databases:
        with snapshot(RecordedFile(database.path)) as connection:
            for session in openclaw.stored_sessions(connection):
                found.setdefault(session.session_id, []).append(database)
    for file in older.values():
        if session_id := _recorded(file):
            found.setdefault(session_id, []).append(file)
    for file in files:
        may_be_newest = file.path not in older and file.path.name.partition(".")[0] in found
        if may_be_newest and (session_id := _recorded(file)):
            found.setdefault(session_id, []).append(file)
    for session_id, states in found.items():
        if len(states) > 1:
            _mark(session_id, states)


def _mark(session_id: str, files: Iterable[RecordedFile]) -> None:
    newest, *others = sorted((_state(file, session_id) for file in files), key=lambda state: state[:-1], reverse=True)
    read = [newest.file]
    held = openclaw.taken_in(records_of(RecordedFile(newest.file.path), session_id), Digests())
    for state in others:
        if state.is_database:  # a copy of it, perhaps with other sessions
            continue
        file = state.file
        file.newer = tuple(one.path for one in read)
        again = RecordedFile(file.path)
        if all(held.has(identity(record)) for record in records_of(again) if is_message(record)):
            unread = f" ({len(again.quarantine):,} of its records cannot be read)" if again.quarantine else ""
            file.refusal = (
                f"{file.path}: an older state of session {session_id}: all that is said in it is in "
                f"{', '.join(path.name for path in file.newer)}{unread}"
            )
        else:
            read.append(file)
            openclaw.taken_in(records_of(RecordedFile(file.path), session_id), held)


def _state(file: RecordedFile, session_id: str) -> _State:
    last, messages = _NEVER, 0
    for record in records_of(RecordedFile(file.path), session_id):
        messages += is_message(record)
        last = max(last, known_instant(record, "timestamp") or _NEVER)
    is_database = file.path.suffix in DATABASES
    return _State(is_database, last, not _OLDER.search(file.path.name), messages, file)


def _recorded(file: RecordedFile) -> str:
    """The session in a file; empty where it is none of OpenClaw's, or names none."""
    with suppress(TranscriptError):
        return openclaw.session_of(file) if OpenClawReader().detects(file) else ""
    return ""


_ALONG: tuple[tuple[TranscriptReader, Callable[[Path], list[Path]]], ...] = (
    (OpenClawReader(), openclaw.beside_database),
    (ClaudeCodeReader(), session_folder.beside),
    (editors.ClineReader(), editors.beside_cline),
    (editors.CursorReader(), editors.beside_cursor),
    (opencode.OpenCodeReader(), opencode.beside),
    (runs.OpenHandsReader(), runs.beside_openhands),
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
