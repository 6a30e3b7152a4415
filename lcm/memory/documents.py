"""Documents of what was said in a workspace, and of what compaction has made of it."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, overload

import numpy as np

from lcm.clock import END_OF_CLOCKS, EPOCH
from lcm.errors import StoreError
from lcm.memory.live_documents import DocumentChange, LiveDocuments
from lcm.memory.scopes import parse_agent_id
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.protocols.models import Vectors
from lcm.records.conversation import Message
from lcm.records.document import Candidate, Decision, Document
from lcm.records.summary import GuidanceShard, Summary
from lcm.retrieval.indexes import mean_vector
from lcm.store.documents import read_undocumented_shards
from lcm.store.store import Store
from lcm.store.summaries import count_folded, messages_beneath, undocumented
from lcm.writing.admission.intake import (
    Change,
    DocumentAnnotated,
    DocumentCreated,
    DocumentEnded,
    Intake,
    IntakeContext,
)
from lcm.writing.new_document import document_of_shard, embedded_text, new_document

_READ_BEFORE = 256
"""Messages before the new ones that are read with them: more than a step or an admission looks back as a rule."""
_log = logging.getLogger(__name__)


class DatedMessages(Sequence[Message]):
    """The `dated` messages, from the first, of the conversation that was read last: while it grows, only what is new is
    read.

    Of a long conversation that was there before, the beginning stays in the store until somebody looks at it.
    """

    def __init__(self, live: LiveDocuments) -> None:
        """
        Args:
            live: the documents of the workspace: their store is read, and again from the start when their version says
                that another process has written to it.
        """
        self._live = live
        self._key: tuple[str, int] = ("", live.version)
        self._before, self._last = 0, list[Message]()
        """How many stand before the last ones, and these."""

    def read(self, conversation_id: str, extracted: int) -> list[str]:
        """Hold the messages of a conversation, of which documents were made of the first `extracted`.

        Returns:
            The ids of those that were read now and are dated by no set clock.
        """
        store, key = self._live.store, (conversation_id, self._live.version)
        if key != self._key:
            self._before, self._last = 0, []
        self._key = key
        del self._last[max(extracted - self._before, 0) :]
        found = store.messages(conversation_id, max(extracted, 1))
        # The last id tells whether another conversation has taken the name.
        if self._last and len(self) == extracted and found[0].message_id == self._last[-1].message_id:
            new, unset = dated([self._last[-1], *found[1:]])
            self._last += new[1:]
        else:
            self._before = max(extracted - _READ_BEFORE, 0)
            latest = self._before and store.latest_instant(conversation_id, self._before, EPOCH, END_OF_CLOCKS)
            said = store.messages(conversation_id, self._before + 1) if extracted else found
            self._last, unset = dated(said, latest or EPOCH)
        return unset

    def __len__(self) -> int:
        return self._before + len(self._last)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._from(0))

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Message]: ...
    def __getitem__(self, place: int | slice) -> Message | Sequence[Message]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return self._from(places)[places - self._before]
        last = self._from(min(places, default=len(self)))
        return [last[one - self._before] for one in places]

    def _from(self, place: int) -> list[Message]:
        """The last messages, this one among them."""
        if place < self._before:
            self._last, self._before = dated(self._live.store.messages(self._key[0]))[0][: len(self)], 0
        return self._last


def dated(messages: Sequence[Message], latest: datetime = EPOCH) -> tuple[list[Message], list[str]]:
    """The messages, each with the latest instant so far: what was said later is not known earlier.

    An instant outside the years 1970-2099 is that of a clock that was not set, and counts as none.

    Args:
        messages: of a conversation.
        latest: of what was said before them.
    Returns:
        The messages, and the ids of those whose instant was passed over.
    """
    found, unset = [], []
    for message in messages:
        instant = message.created_at
        if instant is not None and not EPOCH <= instant < END_OF_CLOCKS:
            unset.append(message.message_id)
            instant = None
        latest = max(latest, instant or latest)
        found.append(message if message.created_at == latest else replace(message, created_at=latest))
    return found, unset


@dataclass(slots=True)
class IngestPlan:
    """The documents, decisions and changes that ingesting messages will write, in order."""

    documents: list[Document] = field(default_factory=list)
    windows: dict[str, Vectors] = field(default_factory=dict)
    """The vectors of each document, by its id: one a window."""
    ends: list[tuple[str, datetime]] = field(default_factory=list)
    notes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def add(self, decision: Decision, changes: Sequence[Change]) -> None:
        """Take in a decision and what it changes."""
        self.decisions.append(decision)
        for change in changes:
            match change:
                case DocumentCreated(document, _):
                    self.documents.append(document)
                case DocumentEnded(document_id, at):
                    self.ends.append((document_id, at))
                case DocumentAnnotated(document_id, metadata):
                    self.notes.append((document_id, metadata))


def _places(messages: Sequence[Message], wanted: Collection[str]) -> dict[str, int]:
    """Where some messages stand, looked for from the end: new ones stand there, however long the conversation is."""
    found: dict[str, int] = {}
    for place in range(len(messages) - 1, -1, -1):
        if len(found) == len(wanted):
            break
        if (message_id := messages[place].message_id) in wanted:
            found.setdefault(message_id, place)
    return found


def _unjudged(
    documents: Sequence[Document],
    windows: Sequence[Vectors],
    candidates: Sequence[Candidate],
    standing: Callable[[Collection[str]], set[str]],
) -> IngestPlan:
    """The plan where every candidate becomes its document: each takes the place that it names."""
    plan = IngestPlan(windows={d.document_id: rows for d, rows in zip(documents, windows, strict=True)})
    stand = standing({document_id for candidate in candidates for document_id in candidate.supersedes})
    for document, candidate in zip(documents, candidates, strict=True):
        stand.add(document.document_id)
        earlier = next((i for i in reversed(candidate.supersedes) if i in stand), None)
        if earlier is not None:
            stand.remove(earlier)
            plan.ends.append((earlier, document.created_at))
            document = replace(document, supersedes=earlier)
        plan.documents.append(document)
    return plan


def _extractions(candidates: Sequence[Candidate]) -> list[list[int]]:
    """The places of candidates that came from one extraction; one without a batch stands alone."""
    keys = [(candidate.batch, 0 if candidate.batch else place) for place, candidate in enumerate(candidates)]
    return [list(places) for _, places in groupby(range(len(keys)), key=keys.__getitem__)]


def _add(store: Store, system: System, documents: Sequence[Document], ends: Sequence[tuple[str, datetime]]) -> None:
    """Write documents with their tokens and the ends of others, inside the caller's transaction."""
    tokens = system.token_estimator.count([document.text for document in documents])
    store.add_documents([replace(d, tokens=n) for d, n in zip(documents, tokens, strict=True)])
    store.end_documents(ends)


class MessageDocuments:
    """Makes documents of the messages of a workspace, as a system extracts, admits and merges them."""

    def __init__(self, system: System, live: LiveDocuments) -> None:
        self._system, self._live = system, live
        self._messages = DatedMessages(live)

    def make(self, conversation_id: str, extracted: int) -> DocumentChange:
        """Write documents of the messages after the first `extracted`, inside the caller's transaction.

        They are written to the scope of the agent that the conversation id names, and compared with what it may read.
        """
        system, live = self._system, self._live
        messages, unset = self._messages, self._messages.read(conversation_id, extracted)
        new = {message.message_id for message in messages[extracted:]}
        if late := [message_id for message_id in unset if message_id in new]:
            _log.warning(
                "%d messages from %s on are dated by no set clock, so by what stands before", len(late), late[0]
            )
            live.incidents["messages dated by no set clock"] += len(late)
        agent = parse_agent_id(conversation_id)
        scope = system.scopes.conversation_scope(conversation_id)
        candidates = self._candidates(messages, extracted, scope, agent)
        # Who has no name is compared with what is written beside it, not with everybody's secrets.
        readable = (scope,) if agent is None else system.scopes.readable(agent)
        plan = self._planned(conversation_id, messages, candidates, readable)
        _add(live.store, system, plan.documents, plan.ends)
        live.store.annotate_documents(plan.notes)
        live.store.add_decisions(conversation_id, plan.decisions)
        live.store.set_extracted(conversation_id, len(messages))
        return DocumentChange(plan.windows, [document_id for document_id, _ in (*plan.ends, *plan.notes)])

    def _candidates(
        self, messages: Sequence[Message], extracted: int, scope: str, agent: str | None
    ) -> list[Candidate]:
        """What extraction makes of the messages after `extracted`, to be written to `scope` where it names none.

        Raises:
            StoreError: if it names one that the agent cannot reach.
        """
        candidates = self._system.extraction.extract(messages, extracted, incidents=self._live.incidents)
        for named in {candidate.scope for candidate in candidates} - {None, scope}:
            if named is not None and not self._system.scopes.is_accessible(named, agent):
                raise StoreError(
                    f"extraction writes to the scope {named!r}, which {agent or 'a conversation without an agent'} "
                    "cannot reach: name it in scopes.agent_access, or in scopes.definitions"
                )
        return [candidate if candidate.scope else replace(candidate, scope=scope) for candidate in candidates]

    def _planned(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        candidates: Sequence[Candidate],
        readable: Sequence[str] | None,
    ) -> IngestPlan:
        """Decide on every candidate, compared with the documents of the scopes that are readable; nothing is written
        yet."""
        system, live = self._system, self._live
        wanted = {message_id for candidate in candidates for message_id in candidate.source_message_ids}
        place_of = _places(messages, wanted)
        sources = {message_id: messages[place] for message_id, place in place_of.items()}

        def document_of(candidate: Candidate, _: datetime) -> Document:
            return new_document(candidate, [sources[i] for i in candidate.source_message_ids], conversation_id)

        said_at = [max(sources[i].created_at or EPOCH for i in c.source_message_ids) for c in candidates]
        windows = live.indexes.embed([embedded_text(c.text, c.content) for c in candidates])
        if contract_of(system.admission).is_off and contract_of(system.deduplication).is_off:
            documents = [document_of(candidate, at) for candidate, at in zip(candidates, said_at, strict=True)]
            return _unjudged(documents, windows, candidates, live.standing)

        def embed(texts: Sequence[str]) -> Vectors:
            return np.concatenate([mean_vector(rows) for rows in live.indexes.embed(texts)])

        records, vectors = live.comparison_set(readable), [mean_vector(rows) for rows in windows]
        records.expect(vectors)
        intake = Intake(system.admission, system.deduplication)
        around = IntakeContext(messages, records, document_of, embed, place_of)
        plan = IngestPlan()
        for places in _extractions(candidates):
            taken = intake.take_in(
                [candidates[place] for place in places],
                [vectors[place] for place in places],
                [said_at[place] for place in places],
                around,
                incidents=live.incidents,
            )
            for decision, changes in taken:
                plan.add(decision, changes)
        texts = [embedded_text(document.text, document.content) for document in plan.documents]
        by_text = {embedded_text(c.text, c.content): rows for c, rows in zip(candidates, windows, strict=True)}
        merged = [text for text in dict.fromkeys(texts) if text not in by_text]
        by_text.update(zip(merged, live.indexes.embed(merged), strict=True))
        plan.windows = {d.document_id: by_text[text] for d, text in zip(plan.documents, texts, strict=True)}
        return plan


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
            ids = [] if contract_of(self._system.summary_documents).is_off else undocumented(connection)
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
        windows = self._live.indexes.embed([document.text for document in documents])
        _add(store, self._system, documents, list(ends.items()))
        return DocumentChange({d.document_id: rows for d, rows in zip(documents, windows, strict=True)}, list(ends))


def _messages_beneath(store: Store, summary: Summary) -> list[Message]:
    """The messages that a summary leads to, in order."""
    with store.reading() as connection:
        ids = messages_beneath(connection, [summary.summary_id])
    found = store.messages_by_id(ids)
    return [found[message_id] for message_id in ids]
