"""Recorded conversations go into a store as they were held, and are compacted on the way or at the end."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple, Self

from eval.batch.reading import Reading
from eval.replay.per_turn import turns
from lcm.compaction.summarizer.routed import Routed
from lcm.compaction.window import StoredWindow
from lcm.encoding import well_formed
from lcm.errors import AuthError, LcmError, StoreError
from lcm.memory.session.preparer import MessagePreparer
from lcm.protocols import Compaction, Work
from lcm.records import CompactionReport, Message, SummaryResult, Transcript
from lcm.store.store import Store
from lcm.transcript.reading import PIECE_ITEMS

Triggers = Literal["per_turn", "at_end"]
"""After each turn what a live session would have done; or when all has been said one sweep, whatever its size."""

_WINDOWS = 64
_BREAKER_OPEN = "circuit breaker open"
_MARK = {"per_turn": "turn", "at_end": "sweep"}
"""The event that says up to which message a conversation was compacted."""


class Parts(NamedTuple):
    """What a batch is made with."""

    compaction: Compaction
    preparer: MessagePreparer


def require_no_admission(compaction: Compaction) -> None:
    """Refuse a summarizer that is chosen by what admission says of turns: a batch has no admission.

    Raises:
        LcmError: if it is.
    """
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

    Where a summarizer fails, `Heard.failure` says why. What a sweep has made until then is kept, without the mark. A
    turn is given up whole, and nothing more of its conversation is taken in: what follows builds on it, and who goes on
    comes to what would have been without the failure. Once credentials were refused no summarizer is asked again.
    """

    def __init__(self, store: Store, parts: Parts, triggers: Triggers, *, incidents: Counter[str]) -> None:
        self._store = store
        self._parts = parts._replace(preparer=replace(parts.preparer, incidents=incidents))
        self._incidents = incidents
        self._is_per_turn = triggers == "per_turn" and not parts.compaction.is_off
        self._triggers = triggers
        self._talks: OrderedDict[str, _Talk] = OrderedDict()
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

    def take_in(self, conversation_id: str, pieces: Sequence[tuple[Reading, Transcript]]) -> Work:
        """Store what is new in pieces of one conversation, turn by turn; an error is kept by the reading it is in.

        The report is that of the last turn.

        Of a session that the session rules leave out nothing is stored.
        """
        report = _nothing_done(conversation_id)
        if not self._parts.preparer.rules.writes(conversation_id, conversation_id):
            return report
        for reading, piece in pieces:
            if reading.refused is None and not reading.heard(conversation_id).failure:
                try:
                    report = yield from self._take_in(reading, piece)
                except LcmError as error:
                    reading.refuse(str(error))
                    self._talks.pop(conversation_id, None)
        return report

    def finish(self, conversation_id: str, reading: Reading) -> Work:
        """End the last turn of a conversation, or sweep it."""
        report = _nothing_done(conversation_id)
        heard = reading.heard(conversation_id)
        try:
            talk = self._talk(conversation_id)
            if talk and not heard.failure:
                report = yield from self._compact(talk)
                heard.failure = report.failure
        except LcmError as error:
            reading.refuse(str(error))
        if self._triggers == "at_end":
            self._talks.pop(conversation_id, None)
        return report

    def _take_in(self, reading: Reading, piece: Transcript) -> Work:
        conversation_id = piece.conversation_id
        report = _nothing_done(conversation_id)
        talk = self._talk(conversation_id)
        heard = reading.heard(conversation_id)
        known = max(0, min(len(piece.messages), (talk.messages if talk else 0) - heard.messages))
        if known:
            self._require_stored(conversation_id, heard.messages, piece.messages[:known])
        for turn in turns(piece.messages[known:]) if self._is_per_turn else [piece.messages[known:]]:
            if talk and self._is_per_turn and turn and turn[0].role == "user":
                report = yield from self._compact(talk)
                if report.failure:
                    heard.failure = report.failure
                    return report
            if turn:
                talk = self._append(conversation_id, talk, turn)
        if talk and (piece.events or piece.title is not None or not heard.messages):
            self._begin()
            self._store.put_events(conversation_id, heard.events, piece.events, piece.title)
        heard.messages += len(piece.messages)
        heard.events += len(piece.events) if talk else 0
        return report

    def _append(self, conversation_id: str, talk: "_Talk | None", turn: Sequence[Message]) -> "_Talk":
        self._begin()
        self._parts.preparer.append(self._store, conversation_id, turn)
        self._uncommitted += len(turn)
        if talk is None:
            talk = _Talk(conversation_id, 0, "", turn[0].created_at, None)
            self._keep(talk)
        talk.messages += len(turn)
        talk.last_id = turn[-1].message_id
        talk.last_at = next((m.created_at for m in reversed(turn) if m.created_at), talk.last_at)
        if self._uncommitted >= PIECE_ITEMS:
            self.commit()
        return talk

    def _compact(self, talk: "_Talk") -> Work:
        """A turn or a sweep: tried out, then written at once."""
        compaction = self._parts.compaction
        if compaction.is_off or talk.compacted_id == talk.last_id:
            return _nothing_done(talk.conversation_id)
        if self._refusal is not None:
            return replace(_nothing_done(talk.conversation_id), has_failed_auth=True, failure=str(self._refusal))
        if talk.last_at is None:
            stored = self._store.heard(talk.conversation_id)
            assert stored is not None
            talk.last_at = stored.last_at
        window = talk.window = talk.window or StoredWindow(self._store, talk.conversation_id)
        window.follow()
        with window.staged():
            if self._is_per_turn:
                work = compaction.after_turn(window, talk.last_at, incidents=self._incidents)
            else:
                work = compaction.compact(window, talk.last_at, incidents=self._incidents, is_forced=True)
            report = yield from self._answered(work)
            if window.is_changed and not (report.failure and self._is_per_turn):
                self._begin()
                window.apply()
                if not report.failure:
                    self._store.note_compaction(talk.conversation_id, talk.last_at, _MARK[self._triggers], talk.last_id)
                self.commit()
        if not report.failure:
            talk.compacted_id = talk.last_id
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

    def _talk(self, conversation_id: str) -> "_Talk | None":
        """What is known of a stored conversation."""
        if talk := self._talks.get(conversation_id):
            self._talks.move_to_end(conversation_id)
            return talk
        heard = self._store.heard(conversation_id)
        if heard is None:
            return None
        compacted = self._store.last_noted(conversation_id, _MARK[self._triggers])
        talk = _Talk(conversation_id, heard.messages, heard.last_id, heard.last_at, compacted)
        self._keep(talk)
        return talk

    def _keep(self, talk: "_Talk") -> None:
        self._talks[talk.conversation_id] = talk
        if len(self._talks) > _WINDOWS:
            self._talks.popitem(last=False)

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
class _Talk:
    """A stored conversation, as it stands now."""

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
