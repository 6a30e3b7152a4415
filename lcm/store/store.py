"""The store: what was said and what retrieval may return, in one SQLite file."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import polars as pl

from lcm.errors import StoreError
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Event, Message, Transcript
from lcm.records.document import Decision, Document
from lcm.records.summary import ContextEntry, Summary
from lcm.store.context import (
    read_context,
    read_records,
    read_retired,
    read_standing,
    remove_from_context,
    replace_range,
)
from lcm.store.context_records import ContextRecords
from lcm.store.conversations import (
    ConversationTotals,
    LastMessage,
    active_conversation,
    add_events,
    contents,
    conversation_frame,
    conversation_row,
    conversation_totals,
    drop_events,
    last_message,
    latest_instant,
    message_frame,
    put_extracted,
    read_events,
    read_extracted,
    set_title,
)
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
from lcm.store.file import StoreFile
from lcm.store.messages import add_pieces, append, image_counts, messages_by_key, messages_have_words, read_messages
from lcm.store.summaries import (
    add_compaction,
    compaction_frame,
    edge_frame,
    is_stored,
    last_detail,
    read_summaries,
    summaries_by_id,
    summary_frame,
)
from lcm.store.transcript_files import is_done, note_done
from lcm.transcript.message_tokens import Rendering

_said: Rendering = attrgetter("content")


class Store(StoreFile):
    """One workspace's SQLite file: conversations, messages, summaries, contexts and documents.

    Every write is one transaction: after a crash the file is what it was before the call or after it, never
    between. Two processes may write the same file; they take turns.
    """

    def ingest(self, transcript: Transcript, tokens: TokenEstimator, rendered: Rendering = _said) -> int:
        """Store a transcript, or what is new in a longer version of one that is stored.

        Laws: the same transcript twice changes nothing; `messages` gives the records back, missing instants
        filled in by the last known one (1970 if there is none), half surrogate pairs in text replaced by
        U+FFFD; `envelope` and part metadata come back exactly. Events, and the title where there is one, are those
        of the newest version: sessions are renamed, and some formats rewrite their header.

        Args:
            transcript: from its beginning.
            tokens: counts the tokens of messages.
            rendered: the text whose tokens a message is counted by: what an assembly makes of it.
        Returns:
            How many messages were added.

        Raises:
            StoreError: if a stored message is missing or changed in the transcript, or a message id is taken;
                nothing is written.
        """
        return self.ingest_pieces([transcript], tokens, rendered)

    def ingest_pieces(
        self,
        pieces: Iterable[Transcript],
        tokens: TokenEstimator,
        rendered: Rendering = _said,
        refused: dict[str, str] | None = None,
    ) -> int:
        """`ingest` of transcripts that come in pieces, never all in memory, as one transaction.

        Each piece continues its conversation where the piece before it ended; those of several conversations may
        alternate.

        Args:
            refused: takes the conversations of which a stored message is missing or changed, with the reasons; they
                stay as they are, and all others are taken in. None = then nothing is.
        """
        with self.writing() as connection:
            return add_pieces(connection, pieces, tokens, rendered, refused)

    def has_words(self) -> bool:
        """Say whether anything is said in a stored message."""
        return messages_have_words(self._connection)

    def append(
        self, conversation_id: str, messages: Sequence[Message], tokens: TokenEstimator, rendered: Rendering = _said
    ) -> None:
        """Put messages behind those of a conversation: what a live session says, without its beginning.

        Raises:
            StoreError: if a message id is taken; nothing is written.
        """
        with self.writing() as connection:
            append(connection, conversation_id, messages, tokens, rendered)

    def events(self, conversation_id: str) -> list[Event]:
        """Read what was recorded beside a conversation's messages, in order."""
        with self.reading() as connection:
            return read_events(connection, conversation_id)

    def conversations(self) -> pl.DataFrame:
        """Read `CONVERSATION_SCHEMA`, in the order of the first ingest."""
        return conversation_frame(self._connection)

    def messages(self, conversation_id: str | None = None, first_seq: int = 1) -> list[Message]:
        """Read the records of one conversation, or of all in the order of their first ingest; from `first_seq` on."""
        with self.reading() as connection:
            return read_messages(connection, conversation_id, first_seq)

    def messages_by_id(self, message_ids: Sequence[str]) -> dict[str, Message]:
        """Read records by id; an unknown one is left out."""
        with self.reading() as connection:
            return messages_by_key(connection, message_ids)

    def last_said(self, conversation_id: str) -> datetime:
        """When the last message of a conversation was said.

        Raises:
            StoreError: if nothing was.
        """
        last = last_message(self._connection, self.conversation_row(conversation_id))
        if last is None:
            raise StoreError(f"nothing has been said in conversation {conversation_id!r}")
        return last.created_at

    def latest_instant(self, conversation_id: str, messages: int, since: datetime, until: datetime) -> datetime | None:
        """The latest instant of the first so many messages of a conversation, of those in [since, until)."""
        return latest_instant(self._connection, self.conversation_row(conversation_id), messages, since, until)

    def contents(self, conversation_id: str) -> list[str]:
        """Read the words of a conversation's messages, in order."""
        return contents(self._connection, self.conversation_row(conversation_id))

    def image_counts(self, conversation_id: str) -> dict[str, int]:
        """Count the images of each message of a conversation that holds some, by its id."""
        with self.reading() as connection:
            return image_counts(connection, self.conversation_row(conversation_id))

    def context(self, conversation_id: str, after: int = -1) -> list[ContextEntry]:
        """Read the context items of a conversation in order, without their words; those beyond the ordinal `after`."""
        return read_context(self._connection, self.conversation_row(conversation_id), after)

    def standing(self, conversation_id: str, ordinals: Sequence[int]) -> set[str]:
        """Read the ids of the messages that stand at these places of a context."""
        return read_standing(self._connection, self.conversation_row(conversation_id), ordinals)

    def context_records(self, conversation_id: str) -> Sequence[Message | Summary]:
        """What the context items of a conversation stand for, in order: each is read when it is looked at."""

        def read(entries: Sequence[ContextEntry]) -> list[Message | Summary]:
            with self.reading() as connection:
                return read_records(connection, entries)

        return ContextRecords(self.context(conversation_id), read)

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
        with self.writing() as connection:
            conversation = self.conversation_row(conversation_id)
            replace_range(connection, conversation, first, last, summary)
            add_compaction(
                connection,
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
        with self.writing() as connection:
            conversation = self.conversation_row(conversation_id)
            add_compaction(connection, conversation, happened_at, event, detail=detail)

    def remove_from_context(self, conversation_id: str, ordinals: Sequence[int]) -> None:
        """Take items out of the context; their messages and summaries stay, and recall finds them."""
        with self.writing() as connection:
            remove_from_context(connection, self.conversation_row(conversation_id), ordinals)

    def retired(self, conversation_id: str) -> list[str]:
        """Read the ids of the messages and summaries that were taken out of the context."""
        return read_retired(self._connection, self.conversation_row(conversation_id))

    def summaries(self, conversation_id: str | None = None) -> list[Summary]:
        """Read the summaries of one conversation, or of all, in the order of making."""
        row = None if conversation_id is None else self.conversation_row(conversation_id)
        with self.reading() as connection:
            return read_summaries(connection, row)

    def summaries_by_id(self, summary_ids: Sequence[str]) -> dict[str, Summary]:
        """Read summaries by id; an unknown one is left out."""
        with self.reading() as connection:
            return summaries_by_id(connection, summary_ids)

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

    def last_message(self, conversation_id: str) -> LastMessage | None:
        """Read how far the active conversation of an id is stored; None where nothing of it is."""
        conversation = active_conversation(self._connection, conversation_id)
        return None if conversation is None else last_message(self._connection, conversation)

    def last_noted(self, conversation_id: str, event: str) -> str | None:
        """Read the detail of the newest compaction event of that name."""
        return last_detail(self._connection, self.conversation_row(conversation_id), event)

    def put_events(self, conversation_id: str, before: int, events: Sequence[Event], title: str | None) -> None:
        """Put events behind the first `before` of a conversation's and drop all others; and a title, where given."""
        with self.writing() as connection:
            conversation = self.conversation_row(conversation_id)
            drop_events(connection, conversation, before)
            add_events(connection, conversation, before, events)
            set_title(connection, conversation, title)

    def conversation_totals(self, conversation_id: str) -> ConversationTotals:
        """Read what a conversation costs, and what it was made into."""
        with self.reading() as connection:
            return conversation_totals(connection, self.conversation_row(conversation_id))

    def is_done(self, digest: str) -> bool:
        """Whether a transcript file of that sha256 has been taken in and compacted."""
        return is_done(self._connection, digest)

    def note_done(self, digest: str, path: str, messages: int, finished_at: datetime) -> None:
        """Note that a transcript file of that sha256 has been taken in and compacted."""
        with self.writing() as connection:
            note_done(connection, digest, path, messages, finished_at)

    def conversation_row(self, conversation_id: str) -> int:
        """The integer key of a conversation; an archived one goes by an id of its own.

        Raises:
            StoreError: if there is none.
        """
        return conversation_row(self._connection, conversation_id)

    def extracted(self, conversation_id: str | None = None) -> dict[str, int]:
        """Tell how far extraction has gone in conversations where messages stand behind that: the last seq it saw.

        Args:
            conversation_id: the only one that is looked at; None = all are.
        """
        return read_extracted(self._connection, conversation_id)

    def set_extracted(self, conversation_id: str, seq: int) -> None:
        """Note that extraction was given the messages up to `seq`."""
        with self.writing() as connection:
            put_extracted(connection, conversation_id, seq)

    def message_frame(self, conversation_id: str | None = None) -> pl.DataFrame:
        """Read `MESSAGE_SCHEMA` of one conversation, or of all, in the order of `messages`."""
        row = None if conversation_id is None else self.conversation_row(conversation_id)
        return message_frame(self._connection, row)

    def add_documents(self, documents: Sequence[Document]) -> int:
        """Store documents; one that is stored already is left as it is.

        Returns:
            How many were new.

        Raises:
            StoreError: if an id is stored with another text, source, scope, kind, session or instant, or a
                document names an unknown conversation or message; none is written.
        """
        with self.writing() as connection:
            return add_documents(connection, documents)

    def documents(self, document_ids: Sequence[str] | None = None) -> pl.DataFrame:
        """Read `DOCUMENT_SCHEMA` by `valid_from`, ties in the order of adding; of these documents, None = of all."""
        return document_frame(self._connection, document_ids)

    def document(self, document_id: str, scopes: Sequence[str] | None = None) -> Document:
        """Read one document whole.

        Raises:
            StoreError: if there is none of that id in the scopes that may be read (None = all).
        """
        with self.reading() as connection:
            return read_document(connection, document_id, scopes)

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
        with self.writing() as connection:
            end_documents(connection, ends)

    def annotate_documents(self, notes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Put keys into the metadata of documents; their other keys stay.

        Raises:
            StoreError: if a document is unknown; none is changed.
        """
        with self.writing() as connection:
            annotate_documents(connection, notes)

    def update_use(self, use: pl.DataFrame) -> None:
        """Write the columns access_count, last_accessed_at and decay_tier of documents."""
        with self.writing() as connection:
            update_use(connection, use)

    def add_decisions(self, conversation_id: str, decisions: Sequence[Decision]) -> None:
        """Keep what became of candidates of a conversation."""
        with self.writing() as connection:
            add_decisions(connection, conversation_id, decisions)

    def decisions(self, scopes: Sequence[str] | None = None) -> pl.DataFrame:
        """Read `DECISION_SCHEMA` in the order of deciding; of the scopes that may be read, None = all."""
        with self.reading() as connection:
            return decision_frame(connection, scopes)
