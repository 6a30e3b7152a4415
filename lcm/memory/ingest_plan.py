"""From the new messages of a conversation to the documents that they make, and to what these change."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

import numpy as np

from lcm.clock import END_OF_CLOCKS, EPOCH
from lcm.memory.comparison_set import ComparisonSet
from lcm.protocols import Vectors
from lcm.records import Candidate, Decision, Document, Message
from lcm.retrieval.indexes import Indexes, mean_vector
from lcm.store.store import Store
from lcm.writing.admission.changes import Annotated, Created, Ended
from lcm.writing.admission.intake import Intake, Surroundings
from lcm.writing.new_document import embedded_text, new_document


@dataclass(slots=True)
class IngestPlan:
    """What is to be written, in order."""

    documents: list[Document] = field(default_factory=list)
    windows: dict[str, Vectors] = field(default_factory=dict)
    """The vectors of each document, by its id: one a window."""
    ends: list[tuple[str, datetime]] = field(default_factory=list)
    notes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    incidents: Counter[str] = field(default_factory=Counter)


def arrive(
    conversation_id: str,
    messages: Sequence[Message],
    candidates: Sequence[Candidate],
    intake: Intake,
    indexes: Indexes,
    compared: Callable[[], ComparisonSet],
) -> IngestPlan:
    """Decide on every candidate; nothing is written yet.

    Args:
        conversation_id: of the messages.
        messages: the conversation from its start, dated.
        candidates: what extraction made of what is new in it.
        intake: admission and deduplication.
        indexes: embed the candidates.
        compared: gives the documents that the candidates may be compared with, where they are.
    """
    wanted = {message_id for candidate in candidates for message_id in candidate.source_message_ids}
    sources = {message.message_id: message for message in messages if message.message_id in wanted}

    def document_of(candidate: Candidate, _: datetime) -> Document:
        return new_document(candidate, [sources[i] for i in candidate.source_message_ids], conversation_id)

    said_at = [max(sources[i].created_at or EPOCH for i in c.source_message_ids) for c in candidates]
    windows = indexes.embed([embedded_text(c.text, c.content) for c in candidates])
    if intake.admission.is_off and intake.deduplication.is_off:
        documents = [document_of(candidate, at) for candidate, at in zip(candidates, said_at, strict=True)]
        return IngestPlan(documents, {d.document_id: rows for d, rows in zip(documents, windows, strict=True)})

    def embed(texts: Sequence[str]) -> Vectors:
        return np.concatenate([mean_vector(rows) for rows in indexes.embed(texts)])

    around = Surroundings(messages, compared(), document_of, embed)
    plan = IngestPlan()
    for places in _extractions(candidates):
        taken = intake.take_in(
            [candidates[place] for place in places],
            [mean_vector(windows[place]) for place in places],
            [said_at[place] for place in places],
            around,
        )
        for decision, changes in taken:
            plan.decisions.append(decision)
            for part in decision.audit.values():
                plan.incidents.update(part.get("incidents", {}))
            if decision.action == "fail":
                plan.incidents["candidate not processed"] += 1
            for change in changes:
                match change:
                    case Created(document, _):
                        plan.documents.append(document)
                    case Ended(document_id, at):
                        plan.ends.append((document_id, at))
                    case Annotated(document_id, metadata):
                        plan.notes.append((document_id, metadata))
    texts = [embedded_text(document.text, document.content) for document in plan.documents]
    by_text = {embedded_text(c.text, c.content): rows for c, rows in zip(candidates, windows, strict=True)}
    merged = [text for text in dict.fromkeys(texts) if text not in by_text]
    by_text.update(zip(merged, indexes.embed(merged), strict=True))
    plan.windows = {d.document_id: by_text[text] for d, text in zip(plan.documents, texts, strict=True)}
    return plan


def write(plan: IngestPlan, conversation_id: str, store: Store, tokens: Sequence[int]) -> None:
    """Write what was decided, inside the caller's transaction; `tokens` are those of the documents' texts."""
    store.add_documents([replace(d, tokens=n) for d, n in zip(plan.documents, tokens, strict=True)])
    store.end_documents(plan.ends)
    store.annotate_documents(plan.notes)
    store.add_decisions(conversation_id, plan.decisions)


def dated(messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """The messages, each with the latest instant so far: what was said later is not known earlier.

    An instant outside the years 1970-2099 is that of a clock that was not set, and counts as none.

    Returns:
        The messages, and the ids of those whose instant was passed over.
    """
    latest = EPOCH
    found, unset = [], []
    for message in messages:
        instant = message.created_at
        if instant is not None and not EPOCH <= instant < END_OF_CLOCKS:
            unset.append(message.message_id)
            instant = None
        latest = max(latest, instant or latest)
        found.append(message if message.created_at == latest else replace(message, created_at=latest))
    return found, unset


def _extractions(candidates: Sequence[Candidate]) -> list[list[int]]:
    """The places of candidates that came from one extraction; one without a batch stands alone."""
    keys = [(candidate.batch, 0 if candidate.batch else place) for place, candidate in enumerate(candidates)]
    return [list(places) for _, places in groupby(range(len(keys)), key=keys.__getitem__)]
