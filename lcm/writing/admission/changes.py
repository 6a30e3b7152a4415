"""What taking in a candidate changes among the documents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lcm.protocols.models import Vectors
from lcm.records.document import Decision, Document


class DocumentCreated(NamedTuple):
    """A change: a new document, with its vector."""

    document: Document
    vector: Vectors | None
    """Shape (1, dim); None where it could not be embedded."""


class DocumentEnded(NamedTuple):
    """A change: a document ends, and another stands in its place from then on."""

    document_id: str
    at: datetime


class DocumentAnnotated(NamedTuple):
    """A change: some keys of a document's metadata; its other keys stay."""

    document_id: str
    metadata: Mapping[str, Any]


Change = DocumentCreated | DocumentEnded | DocumentAnnotated


class IntakeResult(NamedTuple):
    """The decision on one candidate, and the changes to documents that follow."""

    decision: Decision
    changes: tuple[Change, ...] = ()
