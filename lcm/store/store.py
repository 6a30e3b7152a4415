"""The store: what was said and what retrieval may return, in one SQLite file."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from lcm.protocols import TokenEstimator
from lcm.records import Document, Event, Message, Transcript
from lcm.store.connection import connect, transaction
from lcm.store.documents import add_documents, document_frame
from lcm.store.frames import INSTANT, frame
from lcm.store.messages import add_pieces, read_events, read_messages
from lcm.store.migrations import migrate

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

    def ingest(self, transcript: Transcript, tokens: TokenEstimator) -> int:
        """Store a transcript, or what is new in a longer version of one that is stored.

        Laws: the same transcript twice changes nothing; `messages` gives the records back, missing instants
        filled in by the last known one (1970 if there is none), half surrogate pairs in text replaced by
        U+FFFD; `envelope` and part metadata come back exactly. Events, and the title where there is one, are those
        of the newest version: sessions are renamed, and some formats rewrite their header.

        Returns:
            How many messages were added.

        Raises:
            StoreError: if a stored message is missing or changed in the transcript, or a message id is taken;
                nothing is written.
        """
        return self.ingest_pieces([transcript], tokens)

    def ingest_pieces(self, pieces: Iterable[Transcript], tokens: TokenEstimator) -> int:
        """`ingest` of transcripts that come in pieces, never all in memory, as one transaction.

        Each piece continues its conversation where the piece before it ended; those of several conversations may
        alternate.
        """
        with transaction(self._connection):
            return add_pieces(self._connection, pieces, tokens)

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

    def covered(self) -> dict[str, int]:
        """Tell how far documents go, by the seq of the last message that has one, where messages stand behind it."""
        rows = self._connection.execute(
            """
            SELECT c.session_key, coalesce(max(m.seq) FILTER (WHERE d.message_id IS NOT NULL), 0) AS covered
            FROM conversations c JOIN messages m USING (conversation_id)
            LEFT JOIN document_messages d USING (message_id)
            GROUP BY c.conversation_id HAVING covered < max(m.seq) ORDER BY c.conversation_id
            """
        )
        return dict(rows.fetchall())

    def message_frame(self) -> pl.DataFrame:
        """Read `MESSAGE_SCHEMA`, in the order of `messages`."""
        read = self._connection.execute(
            """
            SELECT m.message_key, c.session_key, m.session_id, m.seq, m.role, m.author, m.created_at,
                   m.token_count
            FROM messages m JOIN conversations c USING (conversation_id) ORDER BY m.conversation_id, m.seq
            """
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

    def documents(self, scopes: Sequence[str] | None = None, created_up_to: datetime | None = None) -> pl.DataFrame:
        """Read `DOCUMENT_SCHEMA`, oldest first, ties in the order of adding.

        Args:
            scopes: the scopes that may be read: None = all, empty = none.
            created_up_to: leave out documents that are newer.
        """
        return document_frame(self._connection, scopes, created_up_to)
