"""A session's beginning: what its file has more than the store is taken in.

Which messages of the file the store lacks is told by content or by ids. By content: the newest message of the file that
the store holds as often as the file does up to there is the anchor, and what follows it is missing. By ids: every entry
is known by its own, and messages that were heard live, without ids, by their words and order.

Source: lossless-claw 0.6.3; its first import keeps no parts and no large files, this one does.
"""

import hashlib
import json
import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from lcm.encoding import to_json
from lcm.errors import TranscriptError
from lcm.given import opened_as_is
from lcm.javascript import trim
from lcm.memory.session import MessagePreparer, heartbeat_ids
from lcm.records.conversation import Event, Message
from lcm.records.rules import Rules
from lcm.store.conversations import (
    Checkpoint,
    SessionRow,
    free_ids,
    last_message,
    mark_bootstrapped,
    open_session,
    put_checkpoint,
    read_checkpoint,
)
from lcm.store.messages import read_messages
from lcm.store.store import Store
from lcm.store.summaries import hidden_ids, hide, show
from lcm.transcript.fields import UniqueIds, native_id
from lcm.transcript.openclaw import Branches, OpenClawReader
from lcm.transcript.reading import READERS, reader_of
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.rendering import stored_content

UP_TO_DATE = "conversation already up to date"
DONE = "already bootstrapped"
NO_OVERLAP = "conversation already has messages"
RECONCILED = "reconciled missing session messages"
CAPPED = "reconcile import capped"
NOTHING = "no leaf-path messages in session"
EXCLUDED = "session excluded by pattern"
STATELESS = "stateless session"

_ID_KEYS = ("id", "uuid")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BootstrapReport:
    """What the bootstrap of a session took in, or why nothing."""

    is_bootstrapped: bool
    """Messages were taken in."""
    imported_messages: int
    reason: str | None
    """None: the first import."""
    checkpoint: Checkpoint | None = None
    hidden_messages: int = 0
    """Heartbeats, and what the session left for another branch."""


@dataclass(frozen=True, slots=True)
class SessionMessages:
    """The messages of a session file's one conversation."""

    live: tuple[Message, ...]
    """The conversation, in order."""
    abandoned: tuple[Message, ...] = ()
    """What was said on branches that the session left."""
    unread: int = 0
    """Lines that could not be read."""


def bootstrap(
    store: Store, path: Path, preparer: MessagePreparer, now: datetime, session_id: str, session_key: str = ""
) -> BootstrapReport:
    """Take in what the session file has more, as one transaction.

    Raises:
        TranscriptError: if the file is not there, or of no known format.
        StoreError: if the store refuses; nothing is changed.
    """
    rules, key = preparer.rules, trim(session_key)
    if rules.ignores(session_id, key):
        return BootstrapReport(False, 0, EXCLUDED)
    if rules.is_stateless(key):
        return BootstrapReport(False, 0, STATELESS)
    try:
        file = path.stat()
    except OSError as err:
        raise TranscriptError(f"cannot read the session file {path}: {err.strerror}") from err
    with store.serialised(key or session_id), store.writing() as connection:
        session = open_session(connection, session_id, key, now)
        return _Bootstrap(store, connection, session, session_id, path, file, preparer, now).run()


@dataclass(frozen=True, slots=True)
class _Bootstrap:
    store: Store
    connection: sqlite3.Connection
    session: SessionRow
    session_id: str
    path: Path
    file: os.stat_result
    preparer: MessagePreparer
    now: datetime

    @property
    def _mtime_ms(self) -> int:
        return self.file.st_mtime_ns // 1_000_000

    def run(self) -> BootstrapReport:
        stored = read_messages(self.connection, self.session.conversation_id)
        checkpoint = read_checkpoint(self.connection, self.session.conversation)
        if checkpoint is not None and checkpoint.path != str(self.path):
            checkpoint = None
        done = DONE if self.session.is_bootstrapped else UP_TO_DATE
        if stored and checkpoint and (checkpoint.size, checkpoint.mtime_ms) == (self.file.st_size, self._mtime_ms):
            return self._ended((), None, done)
        read = read_session(self.path, self.preparer.rules.branches)
        if read.unread:
            _log.warning("%s: %d lines of the session file cannot be read", self.path, read.unread)
        if not stored:
            self._check(read.live)
            return self._ended(self._newest(read.live), None, NOTHING)
        missing = self._appended(stored, read.live, checkpoint) if checkpoint else None
        if missing is None:
            missing = compared(stored, read.live, self.preparer.rules.rules)
            if missing is None:
                return self._ended((), None, DONE if self.session.is_bootstrapped else NO_OVERLAP)
            if not self.preparer.rules.may_import(len(missing), len(stored)):
                _log.warning("%s: %d messages are missing, too many to import", self.path, len(missing))
                return self._report(0, CAPPED)
        self._check(read.live)
        return self._ended(missing, RECONCILED, done, self._follow_branch(stored, read))

    def _ended(
        self, missing: Sequence[Message], reason: str | None, reason_of_none: str, hidden: int = 0
    ) -> BootstrapReport:
        """Take in what is missing; the reasons are those of something, and of nothing to import."""
        if missing:
            append_named(self.store, self.session, self.session_id, missing, self.preparer)
        mark_bootstrapped(self.connection, self.session.conversation, self.now)
        hidden += self._hide_heartbeats()
        return self._report(len(missing), reason if missing else reason_of_none, hidden)

    def _newest(self, messages: Sequence[Message]) -> Sequence[Message]:
        """As much of the end as the rules allow; the last message in any case."""
        rules = self.preparer.rules
        most = rules.first_import_tokens
        if most is None:
            return messages
        counting = replace(
            self.preparer, rules=replace(rules, large_file_summarizer=None)
        )  # no model is asked to count
        first, total = len(messages), 0
        while first:
            (tokens,) = counting.count([counting.prepared(messages[first - 1])])
            if first < len(messages) and total + tokens > most:
                break
            first, total = first - 1, total + tokens
        return messages[first:]

    def _appended(
        self, stored: Sequence[Message], live: Sequence[Message], checkpoint: Checkpoint
    ) -> Sequence[Message] | None:
        """What was only appended to the file since the checkpoint; None where more happened, or might have."""
        rules = self.preparer.rules
        has_grown = self.file.st_size > checkpoint.size and self._mtime_ms >= checkpoint.mtime_ms
        if rules.rules != "original" or not has_grown:
            return None
        if identity_hash(stored[-1]) != checkpoint.entry_hash:
            return None
        count = appended_messages(self.path, checkpoint.offset)
        if count is None or count >= len(live) or identity_hash(live[-count - 1]) != checkpoint.entry_hash:
            return None
        return live[len(live) - count :]

    def _follow_branch(self, stored: Sequence[Message], read: SessionMessages) -> int:
        """Hide what the session left, and show again what it came back to."""
        if not read.abandoned or self.preparer.rules.rules != "corrected":
            return 0
        live, conversation = set(map(entry_id, read.live)) - {""}, self.session.conversation
        gone = [message.message_id for message in abandoned(stored, read.live, read.abandoned)]
        hidden = hide(self.connection, conversation, gone, self.now)
        silent = hidden_ids(self.connection, conversation) - set(heartbeat_ids(stored))
        back = [message for message in stored if message.message_id in silent and entry_id(message) in live]
        show(self.connection, conversation, [message.message_id for message in back])
        return hidden

    def _hide_heartbeats(self) -> int:
        if not self.preparer.rules.prune_heartbeats:
            return 0
        hidden = hidden_ids(self.connection, self.session.conversation)
        stored = read_messages(self.connection, self.session.conversation_id)
        visible = [message for message in stored if message.message_id not in hidden]
        return hide(self.connection, self.session.conversation, heartbeat_ids(visible), self.now)

    def _check(self, live: Sequence[Message]) -> None:
        """Note how far the file was read."""
        entry_hash = identity_hash(live[-1]) if live else None
        size = self.file.st_size
        checkpoint = Checkpoint(str(self.path), size, self._mtime_ms, size, entry_hash)
        put_checkpoint(self.connection, self.session.conversation, checkpoint, self.now)

    def _report(self, imported: int, reason: str | None, hidden: int = 0) -> BootstrapReport:
        checkpoint = read_checkpoint(self.connection, self.session.conversation)
        return BootstrapReport(imported > 0, imported, reason, checkpoint, hidden)


def append_named(
    store: Store, session: SessionRow, session_id: str, messages: Sequence[Message], preparer: MessagePreparer
) -> list[Message]:
    """Put messages behind those of a session; gives them as stored.

    One without an id is named by its place, and one whose id is taken gets a number.
    """
    with store.writing() as connection:
        last = last_message(connection, session.conversation)
        first = last.seq + 1 if last else 1
        named = (one.message_id or f"{session.conversation_id}:{seq}" for seq, one in enumerate(messages, first))
        names = free_ids(connection, list(named))
        renamed = [
            replace(one, message_id=name, session_id=session_id) for one, name in zip(messages, names, strict=True)
        ]
        return preparer.append(store, session.conversation_id, renamed)


def compared(stored: Sequence[Message], live: Sequence[Message], rules: Rules) -> Sequence[Message] | None:
    """The messages of a session file that the stored conversation lacks; None where no message is on both sides.

    Args:
        stored: all of its messages, in order.
        live: those of the file, in order.
        rules: `corrected` goes by ids where the file has them; `original` by content.
    """
    if not live:
        return None
    if rules == "corrected" and all(map(entry_id, live)):
        return _by_ids(stored, live)
    return _by_content(stored, live)


def abandoned(stored: Sequence[Message], live: Sequence[Message], left: Sequence[Message]) -> list[Message]:
    """The stored messages that stand on a branch which the session left; those heard without ids by their words."""
    ids, words = set(map(entry_id, left)) - {""}, set(map(identity, left))
    known = set(map(entry_id, stored))
    expected = Counter(identity(message) for message in live if entry_id(message) not in known)
    found = []
    for message in stored:
        if entry_id(message):
            if entry_id(message) in ids:
                found.append(message)
        elif expected[identity(message)]:
            expected[identity(message)] -= 1
        elif identity(message) in words:
            found.append(message)
    return found


def _by_content(stored: Sequence[Message], live: Sequence[Message]) -> Sequence[Message] | None:
    known = Counter(map(identity, stored))
    said = [identity(message) for message in live]
    if stored and identity(stored[-1]) == said[-1] and known[said[-1]] == said.count(said[-1]):
        return []
    until_here = Counter(said)
    for place in range(len(live) - 1, -1, -1):
        if known[said[place]] and known[said[place]] == until_here[said[place]]:
            return live[place + 1 :]
        until_here[said[place]] -= 1
    return None


def _by_ids(stored: Sequence[Message], live: Sequence[Message]) -> Sequence[Message] | None:
    ids = Counter(filter(None, map(entry_id, stored)))
    heard = [identity(message) for message in stored if not entry_id(message)]
    missing, at = [], 0
    for message in live:
        if ids[entry_id(message)]:
            ids[entry_id(message)] -= 1
        elif (said := identity(message)) in heard[at:]:
            at = heard.index(said, at) + 1
        else:
            missing.append(message)
    return missing if len(missing) < len(live) else None


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
