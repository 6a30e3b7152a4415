"""From messages to documents: extraction, annotation, admission, deduplication."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lcm.protocols.models import Vectors
from lcm.records.conversation import Message
from lcm.records.document import Action, Candidate, Document


class Annotation(Protocol):
    """Category, importance, temporal type and expiry of candidates that come without.

    Laws: one candidate out for each in, in order; text and sources stay as they are; equal candidates give equal ones.
    """

    def annotate(self, candidates: Sequence[Candidate], said_at: Sequence[datetime]) -> list[Candidate]:
        """Rate candidates; `said_at` is when the last source message of each was said."""
        ...


class Extraction(Protocol):
    """Messages to candidate documents.

    Laws: every candidate names its source messages, in order; equal messages give equal candidates; it supersedes none
    but documents of earlier candidates, as `lcm.writing.new_document` names them.
    """

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        """Make the candidates of what is new in a conversation.

        Args:
            messages: the conversation from its start, every `created_at` filled in and none before an earlier one.
            known: how many of the first messages were extracted before; each candidate names a newer one.
        """
        ...


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored document and how near it is."""

    document: Document
    cosine: float


class DocumentSort(NamedTuple):
    """What says which documents a candidate is compared with; a document keeps it for good."""

    role: str
    kind: str
    is_durable: bool


class Neighbours(Protocol):
    """The documents that a writer may compare a candidate with, as they stand now: of the scopes that it can reach,
    and known at that instant."""

    def nearest(
        self, vector: Vectors, k: int, *, active_only: bool, only: Callable[[DocumentSort], bool] | None = None
    ) -> list[Neighbour]:
        """The k nearest by cosine, best first; ties oldest first.

        Args:
            vector: shape (1, dim).
            k: how many at most.
            active_only: leave out documents in whose place another stands.
            only: leave out documents of whose sort it does not hold.
        """
        ...


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdict of admission on one candidate."""

    is_admitted: bool
    reason: str
    score: float | None = None
    features: Mapping[str, float] = field(default_factory=dict)
    """Each in [0, 1]."""
    audit: Mapping[str, Any] = field(default_factory=dict)
    """JSON: thresholds, weights, hint, compared ids."""
    is_durable: bool = True
    """False: admitted, but found from its own session alone."""


class Admission(Protocol):
    """Decides whether a candidate is worth keeping.

    Laws: says something of every candidate; equal arguments give an equal assessment.
    """

    def assess(
        self,
        candidate: Candidate,
        vector: Vectors | None,
        neighbours: Neighbours,
        messages: Sequence[Message],
        now: datetime,
        *,
        incidents: Counter[str],
    ) -> Assessment:
        """Judge one candidate.

        Args:
            candidate: what is judged.
            vector: shape (1, dim); None where the candidate could not be embedded.
            neighbours: what is known already.
            messages: the conversation up to the candidate's last source message.
            now: when that message was said.
        """
        ...


@runtime_checkable
class LooksAhead(Protocol):
    """An admission that may look at all candidates of an extraction before it judges the first."""

    def looked_at(self, candidates: Sequence[Candidate], *, incidents: Counter[str]) -> Admission:
        """What judges these very candidates, one by one."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of deduplication on one candidate."""

    action: Action
    """One of the seven decisions."""
    reason: str
    matched: Document | None = None
    context_label: str | None = None
    audit: Mapping[str, Any] = field(default_factory=dict)


class Merged(NamedTuple):
    """One record made of two."""

    text: str
    overview: str
    content: str


class Deduplication(Protocol):
    """Decides what a candidate is to the documents that say nearly the same.

    Laws: one judgement a candidate; a decision that needs a document names one that it was shown; twins keep the first.
    """

    def twins(self, vectors: Vectors) -> list[int | None]:
        """For each candidate of one extraction, the earlier one whose twin it is; None = its own.

        Args:
            vectors: shape (n, dim): the candidates' texts, embedded.
        """
        ...

    def judge(
        self, candidate: Candidate, vector: Vectors | None, neighbours: Neighbours, *, incidents: Counter[str]
    ) -> Judgement: ...

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        """Make one record of both; None where that cannot be done, and nothing must be lost."""
        ...
