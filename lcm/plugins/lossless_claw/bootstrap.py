"""A session's beginning: what its file has more than the store is taken in.

Source: lossless-claw 0.6.3; its first import keeps no parts and no large files, this one does.
"""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from lcm.javascript import trim
from lcm.memory.session.preparer import MessagePreparer
from lcm.plugins.lossless_claw.reconciliation import abandoned, compared
from lcm.plugins.lossless_claw.session_file import (
    FileState,
    SessionMessages,
    appended_messages,
    entry_id,
    file_state,
    identity_hash,
    read_session,
)
from lcm.plugins.lossless_claw.turn import append_named, heartbeat_ids
from lcm.records.conversation import Message
from lcm.store.messages import read_messages
from lcm.store.sessions import (
    Checkpoint,
    SessionRow,
    hidden_ids,
    hide,
    mark_bootstrapped,
    open_session,
    put_checkpoint,
    read_checkpoint,
    show,
)
from lcm.store.store import Store

UP_TO_DATE = "conversation already up to date"
DONE = "already bootstrapped"
NO_OVERLAP = "conversation already has messages"
RECONCILED = "reconciled missing session messages"
CAPPED = "reconcile import capped"
NOTHING = "no leaf-path messages in session"
EXCLUDED = "session excluded by pattern"
STATELESS = "stateless session"

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
    state = file_state(path)
    with store.serialised(key or session_id), store.writing() as connection:
        session = open_session(connection, session_id, key, now)
        return _Bootstrap(store, connection, session, session_id, path, state, preparer, now).run()


@dataclass(frozen=True, slots=True)
class _Bootstrap:
    store: Store
    connection: sqlite3.Connection
    session: SessionRow
    session_id: str
    path: Path
    state: FileState
    preparer: MessagePreparer
    now: datetime

    def run(self) -> BootstrapReport:
        stored = read_messages(self.connection, self.session.conversation_id)
        checkpoint = read_checkpoint(self.connection, self.session.conversation)
        if checkpoint is not None and checkpoint.path != str(self.path):
            checkpoint = None
        if stored and checkpoint and (checkpoint.size, checkpoint.mtime_ms) == (self.state.size, self.state.mtime_ms):
            return self._unchanged(UP_TO_DATE)
        read = read_session(self.path, self.preparer.rules.branches)
        if read.unread:
            _log.warning("%s: %d lines of the session file cannot be read", self.path, read.unread)
        if not stored:
            return self._first_import(read)
        if checkpoint and (new := self._appended(stored, read.live, checkpoint)) is not None:
            return self._reconciled(read, new)
        return self._reconcile(stored, read)

    def _first_import(self, read: SessionMessages) -> BootstrapReport:
        kept = self._newest(read.live)
        if kept:
            append_named(self.store, self.session, self.session_id, kept, self.preparer)
        hidden = self._hide_heartbeats()
        self._mark()
        self._check(read.live)
        return self._report(bool(kept), len(kept), None if kept else NOTHING, hidden)

    def _reconcile(self, stored: Sequence[Message], read: SessionMessages) -> BootstrapReport:
        comparison = compared(stored, read.live, self.preparer.rules.rules)
        if not comparison.has_overlap:
            return self._unchanged(NO_OVERLAP)
        if not self.preparer.rules.may_import(len(comparison.missing), len(stored)):
            _log.warning("%s: %d messages are missing, too many to import", self.path, len(comparison.missing))
            return self._report(False, 0, CAPPED)
        return self._reconciled(read, comparison.missing)

    def _reconciled(self, read: SessionMessages, missing: Sequence[Message]) -> BootstrapReport:
        """Take in what is missing; the file was read to its end."""
        self._check(read.live)
        hidden = self._follow_branch(read)
        if not missing:
            return self._unchanged(UP_TO_DATE, hidden)
        append_named(self.store, self.session, self.session_id, missing, self.preparer)
        hidden += self._hide_heartbeats()
        self._mark()
        return self._report(True, len(missing), RECONCILED, hidden)

    def _unchanged(self, reason_of_first: str, hidden: int = 0) -> BootstrapReport:
        """Nothing to import; the reason given is that of a session which was not bootstrapped before."""
        self._mark()
        hidden += self._hide_heartbeats()
        return self._report(False, 0, DONE if self.session.is_bootstrapped else reason_of_first, hidden)

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
        has_grown = self.state.size > checkpoint.size and self.state.mtime_ms >= checkpoint.mtime_ms
        if rules.rules != "original" or not has_grown:
            return None
        if identity_hash(stored[-1]) != checkpoint.entry_hash:
            return None
        count = appended_messages(self.path, checkpoint.offset)
        if count is None or count >= len(live) or identity_hash(live[-count - 1]) != checkpoint.entry_hash:
            return None
        return live[len(live) - count :]

    def _follow_branch(self, read: SessionMessages) -> int:
        """Hide what the session left, and show again what it came back to."""
        if not read.abandoned or self.preparer.rules.rules != "corrected":
            return 0
        live = set(map(entry_id, read.live)) - {""}
        stored = read_messages(self.connection, self.session.conversation_id)
        gone = [message.message_id for message in abandoned(stored, read.live, read.abandoned)]
        hidden = hide(self.connection, self.session.conversation, gone, self.now)
        silent = hidden_ids(self.connection, self.session.conversation) - set(heartbeat_ids(stored))
        back = [message for message in stored if message.message_id in silent and entry_id(message) in live]
        show(self.connection, self.session.conversation, [message.message_id for message in back])
        return hidden

    def _hide_heartbeats(self) -> int:
        if not self.preparer.rules.prune_heartbeats:
            return 0
        hidden = hidden_ids(self.connection, self.session.conversation)
        stored = read_messages(self.connection, self.session.conversation_id)
        visible = [message for message in stored if message.message_id not in hidden]
        return hide(self.connection, self.session.conversation, heartbeat_ids(visible), self.now)

    def _mark(self) -> None:
        mark_bootstrapped(self.connection, self.session.conversation, self.now)

    def _check(self, live: Sequence[Message]) -> None:
        """Note how far the file was read."""
        entry_hash = identity_hash(live[-1]) if live else None
        checkpoint = Checkpoint(str(self.path), self.state.size, self.state.mtime_ms, self.state.size, entry_hash)
        put_checkpoint(self.connection, self.session.conversation, checkpoint, self.now)

    def _report(self, is_bootstrapped: bool, imported: int, reason: str | None, hidden: int = 0) -> BootstrapReport:
        checkpoint = read_checkpoint(self.connection, self.session.conversation)
        return BootstrapReport(is_bootstrapped, imported, reason, checkpoint, hidden)
