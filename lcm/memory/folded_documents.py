"""Documents of what compaction has made: its summaries, and the messages that it protects."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lcm.memory.live_documents import DocumentChange, LiveDocuments
from lcm.memory.system import System
from lcm.records.conversation import Message
from lcm.records.document import Document
from lcm.records.summary import GuidanceShard, Summary
from lcm.store.guidance import read_undocumented_shards
from lcm.store.lineage import messages_beneath
from lcm.store.store import Store
from lcm.store.summaries import count_folded, undocumented
from lcm.writing.new_document import document_of_shard


class FoldedDocuments:
    """Makes documents of the summaries and the protected messages of a workspace that have none yet."""

    def __init__(self, system: System, live: LiveDocuments) -> None:
        self._system, self._live = system, live
        self._looked_at: tuple[int, int] | None = None
        """How many summaries and protected messages there were when each had its document."""

    def make(self) -> None:
        """Write them in one transaction, and end the documents that the summaries stand for."""
        with self._live.store.reading() as connection:
            self._live.follow()
            folded = count_folded(connection)
            is_needed = folded != self._looked_at and any(self._undocumented())
        if is_needed:
            with self._live.writing() as changes:
                changes.append(self._write(*self._undocumented()))
        self._looked_at = folded

    def _undocumented(self) -> tuple[list[GuidanceShard], list[Summary]]:
        """The protected messages and the summaries that are to have documents, and have none."""
        store = self._live.store
        with store.reading() as connection:
            shards = read_undocumented_shards(connection)
            ids = [] if self._system.summary_documents.is_off else undocumented(connection)
            found = store.summaries_by_id(ids)
        return shards, [found[summary_id] for summary_id in ids]

    def _write(self, shards: Sequence[GuidanceShard], summaries: Sequence[Summary]) -> DocumentChange:
        """Write documents of these, inside the caller's transaction."""
        store, summary_documents = self._live.store, self._system.summary_documents
        scope_of = self._system.scopes.conversation_scope
        documents: list[Document] = []
        ends: dict[str, datetime] = {}
        for shard in shards:
            message = store.messages_by_id([shard.message_id])[shard.message_id]
            documents.append(document_of_shard(shard, message, scope_of(shard.conversation_id)))
        for summary in summaries:
            scope = scope_of(summary.conversation_id)
            documents.append(summary_documents.document(summary, _messages_beneath(store, summary), scope))
            for document_id in summary_documents.ended(summary, self._live.frame):
                ends.setdefault(document_id, summary.created_at)
        texts = [document.text for document in documents]
        windows, tokens = self._live.indexes.embed(texts), self._system.token_estimator.count(texts)
        store.add_documents([replace(d, tokens=n) for d, n in zip(documents, tokens, strict=True)])
        store.end_documents(list(ends.items()))
        return DocumentChange({d.document_id: rows for d, rows in zip(documents, windows, strict=True)}, list(ends))


def _messages_beneath(store: Store, summary: Summary) -> list[Message]:
    """The messages that a summary leads to, in order."""
    with store.reading() as connection:
        ids = messages_beneath(connection, [summary.summary_id])
    found = store.messages_by_id(ids)
    return [found[message_id] for message_id in ids]
