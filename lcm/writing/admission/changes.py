"""What taking in a candidate changes among the documents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lcm.protocols.models import Vectors
from lcm.records.document import Decision, Document


class Created(NamedTuple):
    """A new document."""

    document: Document
    vector: Vectors | None
    """Shape (1, dim); None where it could not be embedded."""


class Ended(NamedTuple):
    """From then on another document stands in its place."""

    document_id: str
    at: datetime


class Annotated(NamedTuple):
    """Keys of a document's metadata that change; its other keys stay."""

    document_id: str
    metadata: Mapping[str, Any]


Change = Created | Ended | Annotated


class Taken(NamedTuple):
    """What became of one candidate, and what that changes."""

    decision: Decision
    changes: tuple[Change, ...] = ()
