"""Which files hold older states of one OpenClaw session: checkpoints, what a reset or an import left, archives.

A name only makes a file worth a look. What it is, its header and its messages say: of the states of one session the one
whose last record is the newest is read, an agent's database before any file, and of two that end alike the one that is
named as the session alone. Another all of whose messages newer ones
hold is passed over; else what it alone holds is read.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from lcm.errors import TranscriptError
from lcm.transcript.agent_database import DATABASES, is_agent_database, stored_sessions
from lcm.transcript.database import snapshot
from lcm.transcript.identity import Digests, recorded_instant
from lcm.transcript.openclaw import OpenClawReader, identity, is_message, records_of, session_of
from lcm.transcript.recorded_file import RecordedFile

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
        for session_id in _stored(database):
            found.setdefault(session_id, []).append(database)
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
    held, read = Digests(), [newest.file]
    _add(held, newest.file, session_id)
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
            _add(held, file, session_id)


def _add(held: Digests, file: RecordedFile, session_id: str) -> None:
    for record in records_of(RecordedFile(file.path), session_id):
        held.add(identity(record))


def _state(file: RecordedFile, session_id: str) -> _State:
    last, messages = _NEVER, 0
    for record in records_of(RecordedFile(file.path), session_id):
        messages += is_message(record)
        last = max(last, _instant(record))
    is_database = file.path.suffix in DATABASES
    return _State(is_database, last, not _OLDER.search(file.path.name), messages, file)


def _instant(record: Any) -> datetime:
    with suppress(TranscriptError):
        return (isinstance(record, dict) and recorded_instant(record, ("timestamp",))) or _NEVER
    return _NEVER


def _stored(database: RecordedFile) -> list[str]:
    found: list[str] = []
    with snapshot(RecordedFile(database.path)) as connection:
        found += [session.session_id for session in stored_sessions(connection)]
    return found


def _recorded(file: RecordedFile) -> str:
    """The session in a file; empty where it is none of OpenClaw's, or names none."""
    with suppress(TranscriptError):
        return session_of(file) if OpenClawReader().detects(file) else ""
    return ""
