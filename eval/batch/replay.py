"""Recorded conversations go into a store as they were held, and are compacted on the way or at the end."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple, Self

from eval.batch.sources import SourceReader
from eval.replay.workspace_replay import turns
from lcm.compaction.summarizer.t5 import Routed
from lcm.compaction.window import StoredWindow
from lcm.encoding import well_formed
from lcm.errors import AuthError, LcmError, StoreError
from lcm.faults import is_of_machine
from lcm.memory.session import MessagePreparer
from lcm.protocols.compaction import Compaction, Work
from lcm.protocols.contract import contract_of
from lcm.records.conversation import Message, Transcript
from lcm.records.summary import CompactionReport, SummaryResult
from lcm.store.store import Store
from lcm.transcript.reading import PIECE_ITEMS

Triggers = Literal["per_turn", "at_end"]
"""After each turn what a live session would have done; or when all has been said one sweep, whatever its size."""

_WINDOWS = 64
_BREAKER_OPEN = "circuit breaker open"
_MARK = {"per_turn": "turn", "at_end": "sweep"}
"""The event that says up to which message a conversation was compacted."""


class ReplayParts(NamedTuple):
    """The components that a batch is replayed with."""

    compaction: Compaction
    preparer: MessagePreparer


def require_no_admission(compaction: Compaction) -> None:
    """Refuse a summarizer that is chosen by what admission says of turns: a batch has no admission."""
    summarizer = compaction.summarizer
    if isinstance(summarizer, Routed) and summarizer.is_routing and compaction.reads_admission:
        raise LcmError(
            "compaction asks the abstractive summarizer where admission scores turns high, and a batch scores none: "
            "write summarizer=centroid, or summarizer.threshold=0 for abstractive summaries of all"
        )


class Replay:
    """Takes in messages and compacts, many conversations side by side; leaving it commits.

    Messages without a compaction share a transaction, a piece long; nothing is held open while a summarizer is asked.
    A turn is all up to the next message of the user. What it is compacted to is written at once, with a mark; who goes
    on after a crash finds the turn done, or does it again from the same context.

    Where a summarizer fails, the reading says why. What a sweep has made until then is kept, without the mark. A
    turn is given up whole, and nothing more of its conversation is taken in: what follows builds on it, and who goes on
    comes to what would have been without the failure. Once credentials were refused no summarizer is asked again.
    """

    def __init__(self, store: Store, parts: ReplayParts, triggers: Triggers, *, incidents: Counter[str]) -> None:
        self._store = store
        self._parts = parts._replace(preparer=replace(parts.preparer, incidents=incidents))
        self._incidents = incidents
        self._is_per_turn = triggers == "per_turn" and not contract_of(parts.compaction).is_off
        self._triggers = triggers
        self._conversations: OrderedDict[str, _StoredConversation] = OrderedDict()
        self._open = ExitStack()
        self._is_begun = False
        self._uncommitted = 0
        self._refusal: AuthError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.commit()
        else:
            self._open.__exit__(*error)  # type: ignore[arg-type]  # rolls back

    def commit(self) -> None:
        self._open.close()
        self._is_begun = False
        self._uncommitted = 0

    def take_in(self, conversation_id: str, pieces: Sequence[tuple[SourceReader, Transcript]]) -> Work:
        """Store what is new in pieces of one conversation, turn by turn; an error is kept by the reading it is in.

        The report is that of the last turn.

        Of a session that the session rules leave out nothing is stored.
        """
        report = _nothing_done(conversation_id)
        if not self._parts.preparer.rules.writes(conversation_id, conversation_id):
            return report
        for reading, piece in pieces:
            if reading.refused is None and not reading.conversation(conversation_id).failure:
                try:
                    report = yield from self._take_in(reading, piece)
                except LcmError as error:
                    if is_of_machine(error):
                        raise
                    reading.refuse(str(error))
                    self._conversations.pop(conversation_id, None)
        return report

    def finish(self, conversation_id: str, reading: SourceReader) -> Work:
        """End the last turn of a conversation, or sweep it."""
        report = _nothing_done(conversation_id)
        read = reading.conversation(conversation_id)
        try:
            stored = self._stored(conversation_id)
            if stored and not read.failure:
                report = yield from self._compact(stored)
                read.failure = report.failure
        except LcmError as error:
            if is_of_machine(error):
                raise
            reading.refuse(str(error))
        if self._triggers == "at_end":
            self._conversations.pop(conversation_id, None)
        return report

    def _take_in(self, reading: SourceReader, piece: Transcript) -> Work:
        conversation_id = piece.conversation_id
        report = _nothing_done(conversation_id)
        stored = self._stored(conversation_id)
        read = reading.conversation(conversation_id)
        known = max(0, min(len(piece.messages), (stored.messages if stored else 0) - read.messages))
        if known:
            self._require_stored(conversation_id, read.messages, piece.messages[:known])
        for turn in turns(piece.messages[known:]) if self._is_per_turn else [piece.messages[known:]]:
            if stored and self._is_per_turn and turn and turn[0].role == "user":
                report = yield from self._compact(stored)
                if report.failure:
                    read.failure = report.failure
                    return report
            if turn:
                stored = self._append(conversation_id, stored, turn)
        if stored and (piece.events or piece.title is not None or not read.messages):
            self._begin()
            self._store.put_events(conversation_id, read.events, piece.events, piece.title)
        read.messages += len(piece.messages)
        read.events += len(piece.events) if stored else 0
        return report

    def _append(
        self, conversation_id: str, stored: "_StoredConversation | None", turn: Sequence[Message]
    ) -> "_StoredConversation":
        self._begin()
        self._parts.preparer.append(self._store, conversation_id, turn)
        self._uncommitted += len(turn)
        if stored is None:
            stored = _StoredConversation(conversation_id, 0, "", turn[0].created_at, None)
            self._keep(stored)
        stored.messages += len(turn)
        stored.last_id = turn[-1].message_id
        stored.last_at = next((m.created_at for m in reversed(turn) if m.created_at), stored.last_at)
        if self._uncommitted >= PIECE_ITEMS:
            self.commit()
        return stored

    def _compact(self, stored: "_StoredConversation") -> Work:
        """A turn or a sweep: tried out, then written at once."""
        compaction = self._parts.compaction
        if contract_of(compaction).is_off or stored.compacted_id == stored.last_id:
            return _nothing_done(stored.conversation_id)
        if self._refusal is not None:
            return replace(_nothing_done(stored.conversation_id), has_failed_auth=True, failure=str(self._refusal))
        if stored.last_at is None:
            stored.last_at = self._store.last_said(stored.conversation_id)
        window = stored.window = stored.window or StoredWindow(self._store, stored.conversation_id)
        window.follow()
        with window.staged():
            if self._is_per_turn:
                work = compaction.after_turn(window, stored.last_at, incidents=self._incidents)
            else:
                work = compaction.compact(window, stored.last_at, incidents=self._incidents, is_forced=True)
            report = yield from self._answered(work)
            if window.is_changed and not (report.failure and self._is_per_turn):
                self._begin()
                window.apply()
                if not report.failure:
                    self._store.note_compaction(
                        stored.conversation_id, stored.last_at, _MARK[self._triggers], stored.last_id
                    )
                self.commit()
        if not report.failure:
            stored.compacted_id = stored.last_id
        return report

    def _answered(self, work: Work) -> Work:
        """Pass requests on until credentials are refused; the report names the refusal."""
        try:
            request = next(work)
            while True:
                if self._refusal is None:
                    self.commit()
                    result = yield request
                    if isinstance(result.failure, AuthError):
                        self._refusal = result.failure
                else:
                    result = SummaryResult("", 0.0, "none", failure=self._refusal)
                request = work.send(result)
        except StopIteration as end:
            report: CompactionReport = end.value
        if report.has_failed_auth or report.reason == _BREAKER_OPEN:
            self._refusal = self._refusal or AuthError(report.failure or report.reason)
            return replace(report, has_failed_auth=True, failure=str(self._refusal))
        return report

    def _stored(self, conversation_id: str) -> "_StoredConversation | None":
        """What is known of a stored conversation."""
        if stored := self._conversations.get(conversation_id):
            self._conversations.move_to_end(conversation_id)
            return stored
        last = self._store.last_message(conversation_id)
        if last is None:
            return None
        compacted = self._store.last_noted(conversation_id, _MARK[self._triggers])
        stored = _StoredConversation(conversation_id, last.seq, last.message_id, last.created_at, compacted)
        self._keep(stored)
        return stored

    def _keep(self, stored: "_StoredConversation") -> None:
        self._conversations[stored.conversation_id] = stored
        if len(self._conversations) > _WINDOWS:
            self._conversations.popitem(last=False)

    def _begin(self) -> None:
        if not self._is_begun:
            self._open.enter_context(self._store.transaction())
            self._is_begun = True

    def _require_stored(self, conversation_id: str, before: int, messages: Sequence[Message]) -> None:
        """Refuse messages that are stored otherwise."""
        stored = self._store.messages_by_id([message.message_id for message in messages])
        for number, message in enumerate(messages, start=before + 1):
            known = stored.get(message.message_id)
            content = well_formed(self._parts.preparer.prepared(message).content)
            if known is None or (known.role, known.content) != (message.role, content):
                raise StoreError(
                    f"conversation {conversation_id!r}: message {number}, {message.message_id!r}, is stored otherwise; "
                    "a transcript may only grow: give the other one its own conversation id"
                )


@dataclass(slots=True)
class _StoredConversation:
    """How far a conversation is stored and compacted."""

    conversation_id: str
    messages: int
    last_id: str
    last_at: datetime | None
    """None: the store knows."""
    compacted_id: str | None
    """The last message when it was compacted last."""
    window: StoredWindow | None = field(default=None)


def _nothing_done(conversation_id: str) -> CompactionReport:
    return CompactionReport(conversation_id, False, "nothing to compact", 0, 0)
