"""Documents in memory, compared by brute force, and what a test needs to fill them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from lcm.errors import ModelError
from lcm.protocols.models import Vectors
from lcm.protocols.writing import Assessment, DocumentSort, Neighbour, Neighbours
from lcm.records.conversation import Message
from lcm.records.document import GLOBAL_SCOPE, Candidate, Document
from lcm.writing.admission.intake import Change, DocumentAnnotated, DocumentCreated, DocumentEnded, IntakeContext
from tests.support.workspaces import minute

UNEMBEDDABLE = "unembeddable"


@dataclass
class Table:
    """Records whose every document is known at once."""

    documents: dict[str, Document] = field(default_factory=dict)
    vectors: dict[str, Vectors] = field(default_factory=dict)
    asked: list[tuple[int, bool]] = field(default_factory=list)
    """(k, active_only) of each search."""

    def known_at(self, now: datetime) -> Neighbours:
        return self

    def nearest(
        self, vector: Vectors, k: int, *, active_only: bool, only: Callable[[DocumentSort], bool] | None = None
    ) -> list[Neighbour]:
        self.asked.append((k, active_only))
        found = [
            Neighbour(document, float(self.vectors[document_id][0] @ vector[0]))
            for document_id, document in self.documents.items()
            if document_id in self.vectors
            and not (active_only and document.invalidated_at)
            and (only is None or only(DocumentSort(document.role, document.kind, document.is_durable)))
        ]
        return sorted(found, key=lambda near: -near.cosine)[:k]

    def stands(self, document_id: str) -> bool:
        return document_id in self.documents and self.documents[document_id].invalidated_at is None

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            match change:
                case DocumentCreated(document, vector):
                    assert document.document_id not in self.documents
                    self.documents[document.document_id] = document
                    if vector is not None:
                        self.vectors[document.document_id] = vector
                case DocumentEnded(document_id, at):
                    known = self.documents[document_id]
                    assert known.invalidated_at is None
                    self.documents[document_id] = replace(known, invalidated_at=at)
                case DocumentAnnotated(document_id, metadata):
                    known = self.documents[document_id]
                    self.documents[document_id] = replace(known, metadata={**known.metadata, **metadata})

    def holding(self, *documents: tuple[Document, float]) -> "Table":
        """Itself with these documents, each at that cosine from `towards`."""
        for document, cosine in documents:
            self.documents[document.document_id] = document
            self.vectors[document.document_id] = at_cosine(cosine)
        return self


def at_cosine(cosine: float) -> Vectors:
    return np.array([[cosine, np.sqrt(1 - cosine**2)]], dtype=np.float32)


TOWARDS = at_cosine(1.0)


def embed(texts: Sequence[str]) -> Vectors:
    """A unit row a text: its angle is the share of vowels, so that like texts are near."""
    if any(UNEMBEDDABLE in text for text in texts):
        raise ModelError("no embedding")
    angles = [sum(map(text.count, "aeiou")) / max(1, len(text)) * np.pi for text in texts]
    return np.array([[np.cos(a), np.sin(a)] for a in angles], dtype=np.float32)


def candidate(text: str, category: str = "other", content: str = "", source: str = "m0") -> Candidate:
    return Candidate(text, (source,), category=category, content=content)


def document(document_id: str, text: str, category: str = "other", at: int = 0, **values: object) -> Document:
    return Document(
        document_id, text, (f"source of {document_id}",), "talk", "s", minute(at), category=category, **values
    )


RATINGS = ("category", "importance", "confidence", "valid_until", "temporal_type", "content", "metadata", "is_durable")


def document_of(of: Candidate, now: datetime) -> Document:
    ratings = {name: getattr(of, name) for name in RATINGS}
    document_id, scope = f"doc {of.text} {of.source_message_ids[0]}", of.scope or GLOBAL_SCOPE
    return Document(document_id, of.text, of.source_message_ids, "talk", "s", now, scope=scope, **ratings)


def messages(*words: str) -> list[Message]:
    return [Message(f"m{i}", "user", text, "s", created_at=minute(i)) for i, text in enumerate(words)]


def around(table: Table, *words: str) -> IntakeContext:
    said = messages(*words or ("hello",))
    places = {message.message_id: place for place, message in enumerate(said)}
    return IntakeContext(said, table, document_of, embed, places)


@dataclass(frozen=True)
class Deciding:
    """Admission that assesses each candidate as a function does."""

    decide: Callable[[Candidate], Assessment]

    def assess(self, candidate: Candidate, *_: object, **__: object) -> Assessment:
        return self.decide(candidate)
