"""From the new messages of a conversation to the documents that they make, and to what these change."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

import numpy as np

from lcm.clock import EPOCH
from lcm.memory.comparison_set import ComparisonSet
from lcm.protocols.models import TokenEstimator, Vectors
from lcm.records.conversation import Message
from lcm.records.document import Candidate, Decision, Document
from lcm.retrieval.indexes import Indexes, mean_vector
from lcm.store.store import Store
from lcm.writing.admission.changes import DocumentAnnotated, DocumentCreated, DocumentEnded
from lcm.writing.admission.intake import Intake, IntakeContext
from lcm.writing.new_document import embedded_text, new_document


@dataclass(slots=True)
class IngestPlan:
    """The documents, decisions and changes that ingesting messages will write, in order."""

    documents: list[Document] = field(default_factory=list)
    windows: dict[str, Vectors] = field(default_factory=dict)
    """The vectors of each document, by its id: one a window."""
    ends: list[tuple[str, datetime]] = field(default_factory=list)
    notes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def plan_ingest(
    conversation_id: str,
    messages: Sequence[Message],
    candidates: Sequence[Candidate],
    intake: Intake,
    indexes: Indexes,
    comparison_set: Callable[[], ComparisonSet],
    standing: Callable[[Collection[str]], set[str]],
    *,
    incidents: Counter[str],
) -> IngestPlan:
    """Decide on every candidate; nothing is written yet.

    Args:
        conversation_id: of the messages.
        messages: the conversation from its start, dated.
        candidates: what extraction made of what is new in it.
        intake: admission and deduplication.
        indexes: embed the candidates.
        comparison_set: gives the documents that the candidates may be compared with, where they are.
        standing: tells which of some documents are stored and have not ended.
        incidents: counts what is survived.
    """
    wanted = {message_id for candidate in candidates for message_id in candidate.source_message_ids}
    place_of = _places(messages, wanted)
    sources = {message_id: messages[place] for message_id, place in place_of.items()}

    def document_of(candidate: Candidate, _: datetime) -> Document:
        return new_document(candidate, [sources[i] for i in candidate.source_message_ids], conversation_id)

    said_at = [max(sources[i].created_at or EPOCH for i in c.source_message_ids) for c in candidates]
    windows = indexes.embed([embedded_text(c.text, c.content) for c in candidates])
    if intake.admission.is_off and intake.deduplication.is_off:
        documents = [document_of(candidate, at) for candidate, at in zip(candidates, said_at, strict=True)]
        return _unjudged(documents, windows, candidates, standing)

    def embed(texts: Sequence[str]) -> Vectors:
        return np.concatenate([mean_vector(rows) for rows in indexes.embed(texts)])

    records, vectors = comparison_set(), [mean_vector(rows) for rows in windows]
    records.expect(vectors)
    around = IntakeContext(messages, records, document_of, embed, place_of)
    plan = IngestPlan()
    for places in _extractions(candidates):
        taken = intake.take_in(
            [candidates[place] for place in places],
            [vectors[place] for place in places],
            [said_at[place] for place in places],
            around,
            incidents=incidents,
        )
        for decision, changes in taken:
            plan.decisions.append(decision)
            for change in changes:
                match change:
                    case DocumentCreated(document, _):
                        plan.documents.append(document)
                    case DocumentEnded(document_id, at):
                        plan.ends.append((document_id, at))
                    case DocumentAnnotated(document_id, metadata):
                        plan.notes.append((document_id, metadata))
    texts = [embedded_text(document.text, document.content) for document in plan.documents]
    by_text = {embedded_text(c.text, c.content): rows for c, rows in zip(candidates, windows, strict=True)}
    merged = [text for text in dict.fromkeys(texts) if text not in by_text]
    by_text.update(zip(merged, indexes.embed(merged), strict=True))
    plan.windows = {d.document_id: by_text[text] for d, text in zip(plan.documents, texts, strict=True)}
    return plan


def write_plan(plan: IngestPlan, conversation_id: str, store: Store, token_estimator: TokenEstimator) -> None:
    """Write what was decided, inside the caller's transaction."""
    tokens = token_estimator.count([document.text for document in plan.documents])
    store.add_documents([replace(d, tokens=n) for d, n in zip(plan.documents, tokens, strict=True)])
    store.end_documents(plan.ends)
    store.annotate_documents(plan.notes)
    store.add_decisions(conversation_id, plan.decisions)


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
