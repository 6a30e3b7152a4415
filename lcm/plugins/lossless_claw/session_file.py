"""A session file as a session sees it: the messages of its one conversation, and what was appended to it."""

import hashlib
import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path

from lcm.encoding import to_json
from lcm.errors import TranscriptError
from lcm.given import opened_as_is
from lcm.records.conversation import Event, Message
from lcm.transcript.identity import UniqueIds, native_id
from lcm.transcript.openclaw import Branches, OpenClawReader
from lcm.transcript.reading import READERS, reader_of
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.rendering.shown_form import stored_content

_ID_KEYS = ("id", "uuid")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileState:
    """The size and time of a session file, as the file system has them."""

    size: int
    mtime_ms: int


@dataclass(frozen=True, slots=True)
class SessionMessages:
    """The messages of a session file's one conversation."""

    live: tuple[Message, ...]
    """The conversation, in order."""
    abandoned: tuple[Message, ...] = ()
    """What was said on branches that the session left."""
    unread: int = 0
    """Lines that could not be read."""


def file_state(path: Path) -> FileState:
    """Look at the file without reading it.

    Raises:
        TranscriptError: if it is not there.
    """
    try:
        found = path.stat()
    except OSError as err:
        raise TranscriptError(f"cannot read the session file {path}: {err.strerror}") from err
    return FileState(found.st_size, found.st_mtime_ns // 1_000_000)


def read_session(path: Path, branches: Branches) -> SessionMessages:
    """Read the session of a file, whichever format it is; where it holds several, the first.

    Raises:
        TranscriptError: if no reader recognises the file, or it cannot be read at all.
    """
    file = RecordedFile(path)
    if not file.first:
        return SessionMessages(())
    reader = reader_of(file, readers=(OpenClawReader(branches), *READERS[1:]))
    has_tree = isinstance(reader, OpenClawReader)
    own = file.name if has_tree else None
    ids, live, abandoned, others = UniqueIds(), list[Message](), list[Message](), set[str]()
    for recorded in reader.read(file):
        item = recorded.item
        if isinstance(item, Event):
            own = recorded.conversation_id if has_tree and item.kind == "session" else own
            continue
        own = own or recorded.conversation_id
        if recorded.conversation_id != own and not has_tree:
            others.add(recorded.conversation_id)
            continue
        into = live if recorded.conversation_id == own else abandoned
        into.append(replace(item, message_id=ids.name(recorded.conversation_id, item.message_id, len(into) + 1)))
    if others:
        _log.warning("%s: %d other conversations of the session file are left out; ingest them", path, len(others))
    return SessionMessages(tuple(live), tuple(abandoned), len(file.quarantine))


def appended_messages(path: Path, offset: int) -> int | None:
    """Count the messages behind an offset of JSONL; None where anything else stands there too."""
    with opened_as_is(path) as stream:
        stream.seek(offset)
        chunk = stream.read()
    if chunk.lstrip()[:1] == b"[":
        return None
    lines = [line for line in chunk.split(b"\n") if line.strip()]
    return len(lines) if all(map(_is_message_line, lines)) else None


def entry_id(message: Message) -> str:
    """The id of the file's entry that held the message; empty where there is none."""
    record = message.envelope.get("record")
    holder = record if isinstance(record, dict) else {}
    return next((found for key in _ID_KEYS if (found := native_id(holder.get(key)))), "")


def identity(message: Message) -> tuple[str, str]:
    """Role and words: by what a message without an id is known again, whether its large texts were taken out or not."""
    return message.role, stored_content(replace(message, files=()) if message.parts else message)


def identity_hash(message: Message) -> str:
    role, content = identity(message)
    return hashlib.sha256(to_json({"role": role, "content": content}).encode()).hexdigest()


def _is_message_line(line: bytes) -> bool:
    try:
        entry = json.loads(line)
    except (RecursionError, ValueError):
        return False
    said = entry.get("message", entry) if isinstance(entry, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("role"), str):
        return False
    return "content" in said or ("command" in said and "output" in said)
