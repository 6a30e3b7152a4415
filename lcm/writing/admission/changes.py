"""What taking in a candidate changes among the documents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lcm.protocols.models import Vectors
from lcm.records.document import Decision, Document


class DocumentCreated(NamedTuple):
    """A new document."""

    document: Document
    vector: Vectors | None
    """Shape (1, dim); None where it could not be embedded."""


class DocumentEnded(NamedTuple):
    """From then on another document stands in its place."""

    document_id: str
    at: datetime


class DocumentAnnotated(NamedTuple):
    """Keys of a document's metadata that change; its other keys stay."""

    document_id: str
    metadata: Mapping[str, Any]


Change = DocumentCreated | DocumentEnded | DocumentAnnotated


class IntakeResult(NamedTuple):
    """What became of one candidate, and what that changes."""

    decision: Decision
    changes: tuple[Change, ...] = ()
