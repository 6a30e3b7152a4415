"""The store: what was said and what retrieval may return, in one SQLite file."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl
from filelock import FileLock

from lcm.clock import parse_instant
from lcm.errors import StoreError
from lcm.protocols import TokenEstimator
from lcm.records import ContextEntry, Decision, Document, Event, Message, Summary, Transcript
from lcm.store.connection import connect, transaction
from lcm.store.context import read_context, read_context_records, read_retired, remove_from_context, replace_range
from lcm.store.decisions import add_decisions, decision_frame
from lcm.store.documents import (
    add_documents,
    annotate_documents,
    document_frame,
    end_documents,
    history,
    read_document,
    update_use,
)
from lcm.store.frames import INSTANT, frame
from lcm.store.messages import Wording, add_pieces, append, messages_by_key, read_events, read_messages
from lcm.store.migrations import migrate
from lcm.store.summaries import (
    add_compaction,
    compaction_frame,
    edge_frame,
    is_stored,
    read_summaries,
    summaries_by_id,
    summary_frame,
)
from lcm.store.transcript_files import (
    ConversationTotals,
    Heard,
    conversation_totals,
    is_done,
    last_detail,
    note_done,
    put_events,
    read_heard,
)

CONVERSATION_SCHEMA: dict[str, pl.DataType] = {
    "conversation_id": pl.String(),
    "title": pl.String(),
    "messages": pl.Int64(),
    "first_at": INSTANT,
    "last_at": INSTANT,
}
"""The columns of `Store.conversations`."""

MESSAGE_SCHEMA: dict[str, pl.DataType] = {
    "message_id": pl.String(),
    "conversation_id": pl.String(),
    "session_id": pl.String(),
    "seq": pl.Int64(),
    "role": pl.String(),
    "author": pl.String(),
    "created_at": INSTANT,
    "tokens": pl.Int64(),
}
"""The columns of `Store.message_frame`."""

_LOCKS = 64
"""Lock files of a store: conversations that share one wait for each other without need, but seldom."""

_said: Wording = attrgetter("content")


class Store:
    """One workspace.

    Every write is one transaction: after a crash the file is what it was before the call or after it, never
    between. Two processes may write the same file; they take turns.
    """

    def __init__(self, path: Path | str = ":memory:", opened_at: datetime | None = None) -> None:
        """Open or create the file and bring its schema up to date.

        Args:
            path: a file, or ":memory:".
            opened_at: dates the migrations that this opening applies; None reads the clock.

        Raises:
            StoreError: if the path cannot be opened as a SQLite database.
            MigrationError: if the file is newer than this program, or a migration failed.
        """
        self._locks = None if str(path) == ":memory:" else Path(f"{path}-locks")
        with ExitStack() as closed_on_error:
            self._connection = closed_on_error.enter_context(closing(connect(path)))
            migrate(self._connection, opened_at or datetime.now(UTC))
            closed_on_error.pop_all()

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Make several writes one: all of them happen, or none; one that fails inside undoes only itself."""
        return transaction(self._connection)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, and the connection for the functions of `lcm.store` that work inside it."""
        with transaction(self._connection):
            yield self._connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for several reads of one state; it must not be written through."""
        with transaction(self._connection, "DEFERRED"):
            yield self._connection

    @classmethod
    def copied_from(cls, path: Path) -> Self:
        """A store in this process alone that holds what a file holds.

        Raises:
            StoreError: if there is no such file, or it is no SQLite database.
        """
        store = cls()
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as original:
                original.backup(store._connection)
        except sqlite3.Error as error:
            store.close()
            raise StoreError(f"cannot copy the store {str(path)!r}: {error}") from error
        migrate(store._connection, datetime.now(UTC))
        return store

    def copy_to(self, path: Path) -> None:
        """Write all that is here into a new file."""
        with closing(sqlite3.connect(path)) as copy:
            self._connection.backup(copy)

    @property
    def changes(self) -> int:
        """A count that rises whenever something is written through this object."""
        return self._connection.total_changes

    def serialised(self, conversation_id: str) -> AbstractContextManager[object]:
        """Let nobody else work on the conversation meanwhile, in whichever thread or process.

        For work that reads, asks a model and then writes; each write is a transaction besides. Whoever holds one
        conversation must not ask for another.
        """
        if self._locks is None:
            return nullcontext()
        self._locks.mkdir(exist_ok=True)
        number = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).digest()[0] % _LOCKS
        return FileLock(self._locks / f"{number}.lock")

    def ingest(self, transcript: Transcript, tokens: TokenEstimator, wording: Wording = _said) -> int:
        """Store a transcript, or what is new in a longer version of one that is stored.

        Laws: the same transcript twice changes nothing; `messages` gives the records back, missing instants
        filled in by the last known one (1970 if there is none), half surrogate pairs in text replaced by
        U+FFFD; `envelope` and part metadata come back exactly. Events, and the title where there is one, are those
        of the newest version: sessions are renamed, and some formats rewrite their header.

        Args:
            transcript: from its beginning.
            tokens: counts the tokens of messages.
            wording: the text whose tokens a message is counted by: what an assembly makes of it.
        Returns:
            How many messages were added.

        Raises:
            StoreError: if a stored message is missing or changed in the transcript, or a message id is taken;
                nothing is written.
        """
        return self.ingest_pieces([transcript], tokens, wording)

    def ingest_pieces(self, pieces: Iterable[Transcript], tokens: TokenEstimator, wording: Wording = _said) -> int:
        """`ingest` of transcripts that come in pieces, never all in memory, as one transaction.

        Each piece continues its conversation where the piece before it ended; those of several conversations may
        alternate.
        """
        with transaction(self._connection):
            return add_pieces(self._connection, pieces, tokens, wording)

    def append(
        self, conversation_id: str, messages: Sequence[Message], tokens: TokenEstimator, wording: Wording = _said
    ) -> None:
        """Put messages behind those of a conversation: what a live session says, without its beginning.

        Raises:
            StoreError: if a message id is taken; nothing is written.
        """
        with transaction(self._connection):
            append(self._connection, conversation_id, messages, tokens, wording)

    def events(self, conversation_id: str) -> list[Event]:
        """Read what was recorded beside a conversation's messages, in order."""
        return read_events(self._connection, conversation_id)

    def conversations(self) -> pl.DataFrame:
        """Read `CONVERSATION_SCHEMA`, in the order of the first ingest."""
        read = self._connection.execute(
            """
            SELECT c.session_key, c.title, count(m.message_id), min(m.created_at), max(m.created_at)
            FROM conversations c LEFT JOIN messages m USING (conversation_id)
            GROUP BY c.conversation_id ORDER BY c.conversation_id
            """
        )
        return frame(read, CONVERSATION_SCHEMA)

    def messages(self, conversation_id: str | None = None, first_seq: int = 1) -> list[Message]:
        """Read the records of one conversation, or of all in the order of their first ingest; from `first_seq` on."""
        with transaction(self._connection, "DEFERRED"):
            return read_messages(self._connection, conversation_id, first_seq)

    def messages_by_id(self, message_ids: Sequence[str]) -> dict[str, Message]:
        """Read records by id; an unknown one is left out."""
        with transaction(self._connection, "DEFERRED"):
            return messages_by_key(self._connection, message_ids)

    def last_said(self, conversation_id: str) -> datetime:
        """When the last message of a conversation was said.

        Raises:
            StoreError: if nothing was.
        """
        last = self._connection.execute(
            "SELECT created_at FROM messages WHERE conversation_id = ? ORDER BY seq DESC LIMIT 1",
            (self.conversation_row(conversation_id),),
        ).fetchone()
        if last is None:
            raise StoreError(f"nothing has been said in conversation {conversation_id!r}")
        return parse_instant(last[0])

    def contents(self, conversation_id: str) -> list[str]:
        """Read the words of a conversation's messages, in order."""
        rows = self._connection.execute(
            "SELECT content FROM messages WHERE conversation_id = ? ORDER BY seq",
            (self.conversation_row(conversation_id),),
        )
        return [content for (content,) in rows]

    def context(self, conversation_id: str, after: int = -1) -> list[ContextEntry]:
        """Read the context items of a conversation in order, without their words; those beyond the ordinal `after`."""
        return read_context(self._connection, self.conversation_row(conversation_id), after)

    def context_records(self, conversation_id: str) -> list[Message | Summary]:
        """Read what the context items of a conversation stand for, in order."""
        with transaction(self._connection, "DEFERRED"):
            return read_context_records(self._connection, self.conversation_row(conversation_id))

    def replace_range(
        self,
        conversation_id: str,
        first: int,
        last: int,
        summary: Summary,
        tokens_before: int = 0,
        tokens_after: int = 0,
    ) -> None:
        """Put a summary in the place of the context items from ordinal `first` to `last`, and note the event.

        Nothing else changes the context but appending and `remove_from_context`. The messages stay.

        Args:
            conversation_id: whose context.
            first: the ordinal of the first item that the summary was made of.
            last: that of the last.
            summary: names exactly those items as its sources.
            tokens_before: of the whole context, for the event.
            tokens_after: likewise.

        Raises:
            StoreError: if the items are not the summary's sources, or its id is taken; nothing is written.
        """
        with transaction(self._connection):
            conversation = self.conversation_row(conversation_id)
            replace_range(self._connection, conversation, first, last, summary)
            add_compaction(
                self._connection,
                conversation,
                summary.created_at,
                summary.kind,
                summary.level,
                summary.method,
                tokens_before,
                tokens_after,
                summary.summary_id,
            )

    def note_compaction(self, conversation_id: str, happened_at: datetime, event: str, detail: str) -> None:
        """Note what compaction did without making a summary: why it stopped or failed."""
        with transaction(self._connection):
            conversation = self.conversation_row(conversation_id)
            add_compaction(self._connection, conversation, happened_at, event, detail=detail)

    def remove_from_context(self, conversation_id: str, ordinals: Sequence[int]) -> None:
        """Take items out of the context; their messages and summaries stay, and recall finds them."""
        with transaction(self._connection):
            remove_from_context(self._connection, self.conversation_row(conversation_id), ordinals)

    def retired(self, conversation_id: str) -> list[str]:
        """Read the ids of the messages and summaries that were taken out of the context."""
        return read_retired(self._connection, self.conversation_row(conversation_id))

    def summaries(self, conversation_id: str | None = None) -> list[Summary]:
        """Read the summaries of one conversation, or of all, in the order of making."""
        row = None if conversation_id is None else self.conversation_row(conversation_id)
        with transaction(self._connection, "DEFERRED"):
            return read_summaries(self._connection, row)

    def summaries_by_id(self, summary_ids: Sequence[str]) -> dict[str, Summary]:
        """Read summaries by id; an unknown one is left out."""
        with transaction(self._connection, "DEFERRED"):
            return summaries_by_id(self._connection, summary_ids)

    def has_summary(self, summary_id: str) -> bool:
        return is_stored(self._connection, summary_id)

    def summary_frame(self) -> pl.DataFrame:
        """Read `SUMMARY_SCHEMA`, in the order of making."""
        return summary_frame(self._connection)

    def edges(self, conversation_id: str) -> pl.DataFrame:
        """Read `EDGE_SCHEMA`: what each summary of a conversation was made of, in order."""
        return edge_frame(self._connection, self.conversation_row(conversation_id))

    def compactions(self) -> pl.DataFrame:
        """Read `COMPACTION_SCHEMA`: what compaction did, in order."""
        return compaction_frame(self._connection)

    def heard(self, conversation_id: str) -> Heard | None:
        """Tell how far a conversation is stored; None where nothing of it is."""
        return read_heard(self._connection, conversation_id)

    def last_noted(self, conversation_id: str, event: str) -> str | None:
        """Read the detail of the newest compaction event of that name."""
        return last_detail(self._connection, self.conversation_row(conversation_id), event)

    def put_events(self, conversation_id: str, before: int, events: Sequence[Event], title: str | None) -> None:
        """Put events behind the first `before` of a conversation's and drop all others; and a title, where given."""
        with transaction(self._connection):
            put_events(self._connection, self.conversation_row(conversation_id), before, events, title)

    def conversation_totals(self, conversation_id: str) -> ConversationTotals:
        """Read what a conversation costs, and what it was made into."""
        with transaction(self._connection, "DEFERRED"):
            return conversation_totals(self._connection, self.conversation_row(conversation_id))

    def is_done(self, digest: str) -> bool:
        """Whether a transcript file of that sha256 has been taken in and compacted."""
        return is_done(self._connection, digest)

    def note_done(self, digest: str, path: str, messages: int, finished_at: datetime) -> None:
        """Note that a transcript file of that sha256 has been taken in and compacted."""
        with transaction(self._connection):
            note_done(self._connection, digest, path, messages, finished_at)

    def conversation_row(self, conversation_id: str) -> int:
        """The integer key of a conversation; an archived one goes by an id of its own.

        Raises:
            StoreError: if there is none.
        """
        found: tuple[int] | None = self._connection.execute(
            "SELECT conversation_id FROM conversations WHERE session_key = ? ORDER BY active DESC", (conversation_id,)
        ).fetchone()
        if found is None:
            raise StoreError(f"there is no conversation {conversation_id!r} in the store")
        return found[0]

    def extracted(self) -> dict[str, int]:
        """Tell how far extraction has gone in conversations where messages stand behind that: the last seq it saw."""
        rows = self._connection.execute(
            """
            SELECT c.session_key, coalesce(e.extracted_seq, 0) AS extracted
            FROM conversations c LEFT JOIN extraction_state e USING (conversation_id)
            WHERE extracted < (SELECT max(m.seq) FROM messages m WHERE m.conversation_id = c.conversation_id)
            ORDER BY c.conversation_id
            """
        )
        return dict(rows.fetchall())

    def set_extracted(self, conversation_id: str, seq: int) -> None:
        """Note that extraction was given the messages up to `seq`."""
        with transaction(self._connection):
            self._connection.execute(
                """
                INSERT INTO extraction_state (conversation_id, extracted_seq)
                SELECT conversation_id, ? FROM conversations WHERE session_key = ?
                ON CONFLICT (conversation_id) DO UPDATE SET extracted_seq = excluded.extracted_seq
                """,
                (seq, conversation_id),
            )

    def message_frame(self, conversation_id: str | None = None) -> pl.DataFrame:
        """Read `MESSAGE_SCHEMA` of one conversation, or of all, in the order of `messages`."""
        row = None if conversation_id is None else self.conversation_row(conversation_id)
        read = self._connection.execute(
            """
            SELECT m.message_key, c.session_key, m.session_id, m.seq, m.role, m.author, m.created_at,
                   m.token_count
            FROM messages m JOIN conversations c USING (conversation_id)
            WHERE ?1 IS NULL OR m.conversation_id = ?1 ORDER BY m.conversation_id, m.seq
            """,
            (row,),
        )
        return frame(read, MESSAGE_SCHEMA)

    def add_documents(self, documents: Sequence[Document]) -> int:
        """Store documents; one that is stored already is left as it is.

        Returns:
            How many were new.

        Raises:
            StoreError: if an id is stored with another text, source, scope, kind, session or instant, or a
                document names an unknown conversation or message; none is written.
        """
        with transaction(self._connection):
            return add_documents(self._connection, documents)

    def documents(
        self,
        scopes: Sequence[str] | None = None,
        known_at: datetime | None = None,
        document_ids: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Read `DOCUMENT_SCHEMA` by `valid_from`, ties in the order of adding.

        Args:
            scopes: the scopes that may be read: None = all, empty = none.
            known_at: leave out documents that did not exist then, or in whose place another stood; None = read all.
            document_ids: leave out all others; None = read all.
        """
        return document_frame(self._connection, scopes, known_at, document_ids)

    def written_elsewhere(self) -> int:
        """A number that changes whenever another connection has written to the file, and at no write of this one."""
        version: tuple[int] = self._connection.execute("PRAGMA data_version").fetchone()
        return version[0]

    def document(self, document_id: str, scopes: Sequence[str] | None = None) -> Document:
        """Read one document whole.

        Raises:
            StoreError: if there is none of that id in the scopes that may be read (None = all).
        """
        return read_document(self._connection, document_id, scopes)

    def history(self, document_id: str, scopes: Sequence[str] | None = None) -> list[Document]:
        """Read the documents in whose place one came to stand, itself, and those that followed it, oldest first.

        Raises:
            StoreError: if one of them is of no scope that may be read (None = all).
        """
        return [self.document(found, scopes) for found in history(self._connection, document_id)]

    def end_documents(self, ends: Sequence[tuple[str, datetime]]) -> None:
        """Let documents end, each at its instant: another stands in their place from then on; they stay readable.

        Raises:
            StoreError: if one is unknown or has ended already; none is changed.
        """
        with transaction(self._connection):
            end_documents(self._connection, ends)

    def annotate_documents(self, notes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Put keys into the metadata of documents; their other keys stay.

        Raises:
            StoreError: if a document is unknown; none is changed.
        """
        with transaction(self._connection):
            annotate_documents(self._connection, notes)

    def update_use(self, use: pl.DataFrame) -> None:
        """Write the columns access_count, last_accessed_at and decay_tier of documents."""
        with transaction(self._connection):
            update_use(self._connection, use)

    def add_decisions(self, conversation_id: str, decisions: Sequence[Decision]) -> None:
        """Keep what became of candidates of a conversation."""
        with transaction(self._connection):
            add_decisions(self._connection, conversation_id, decisions)

    def decisions(self, scopes: Sequence[str] | None = None) -> pl.DataFrame:
        """Read `DECISION_SCHEMA` in the order of deciding; of the scopes that may be read, None = all."""
        return decision_frame(self._connection, scopes)
