"""From the candidates of one extraction to what becomes of them: twins, admission, deduplication, and the changes.

Source: memory-lancedb-pro, smart-extractor. Its rows are changed in place; here what a document says never changes, and
others follow it: merged from it, in its place, or related to it.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, overload

import numpy as np

from lcm.checks import check_range
from lcm.clock import EPOCH
from lcm.errors import LcmError, UnrecordedReplyError
from lcm.protocols.contract import contract_of
from lcm.protocols.models import Vectors
from lcm.protocols.writing import (
    Admission,
    Assessment,
    Deduplication,
    DocumentSort,
    Judgement,
    LooksAhead,
    Merged,
    Neighbour,
    Neighbours,
)
from lcm.records.conversation import Message
from lcm.records.document import Action, Candidate, Decision, Document
from lcm.writing.lifecycle import (
    ALWAYS_MERGED,
    GENERAL,
    MERGED,
    VERSIONED,
    appended,
    fact_key,
    observe,
    read_support,
    support_info,
)
from lcm.writing.new_document import embedded_text

_MILLISECOND = timedelta(milliseconds=1)


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


Item = TypeVar("Item", covariant=True)


class Prefix(Sequence[Item]):
    """The first `count` items; the sequence behind it may grow, not change."""

    def __init__(self, items: Sequence[Item], count: int) -> None:
        self._items = items
        self._count = min(count, len(items))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return islice(self._items, self._count)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | Sequence[Item]:
        places = range(self._count)[place]
        if isinstance(places, int):
            return self._items[places]
        return [self._items[i] for i in places]


_log = logging.getLogger(__name__)


class ComparableDocuments(Protocol):
    """The documents that candidates are compared with, growing as candidates are taken in."""

    def known_at(self, now: datetime) -> Neighbours:
        """The documents known at that instant, after every change applied so far.

        With `active_only` a document that ever ends is left out, even where it ends later than `now`: it can end but
        once.
        """
        ...

    def stands(self, document_id: str) -> bool:
        """Whether it is there, and has not ended."""
        ...

    def apply(self, changes: Sequence[Change]) -> None: ...


@dataclass(frozen=True, slots=True)
class IntakeContext:
    """The conversation and the documents that the candidates of one extraction are judged against."""

    messages: Sequence[Message]
    """The conversation from its start."""
    records: ComparableDocuments
    document_of: Callable[[Candidate, datetime], Document]
    """The document that a candidate becomes when it is said at that instant."""
    embed: Callable[[Sequence[str]], Vectors]
    """One row of unit length a text."""
    places: Mapping[str, int]
    """Of the messages that the candidates were made of, by id."""


@dataclass(frozen=True, slots=True)
class _IncomingCandidate:
    """One candidate on its way in."""

    candidate: Candidate
    vector: Vectors | None
    now: datetime
    context: IntakeContext
    conversation: Sequence[Message]
    """The conversation up to its last source message."""
    made_ids: Set[str]
    """The documents made of candidates before it."""
    incidents: Counter[str]


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes in the candidates of one extraction, one after another; each sees what became of those before it.

    Laws: one decision a candidate, in order; every document that ends is named by the `supersedes` of its follower; a
    candidate whose judge, embedding or merging fails stops no other.
    """

    admission: Admission
    deduplication: Deduplication
    merged_confidence: float = 0.8
    """Of a document made of two."""

    def __post_init__(self) -> None:
        check_range(self, "merged_confidence", ge=0, le=1)

    def take_in(
        self,
        candidates: Sequence[Candidate],
        vectors: Sequence[Vectors | None],
        said_at: Sequence[datetime],
        context: IntakeContext,
        *,
        incidents: Counter[str],
    ) -> list[IntakeResult]:
        """Decide on every candidate, and apply the changes to the records.

        Args:
            candidates: of one extraction, in order.
            vectors: `embedded_text` of each, shape (1, dim); None where it could not be embedded.
            said_at: when the last source message of each was said.
            context: the conversation, and the records to change.
            incidents: counts what is survived.
        """
        twin_of = self._twins(candidates, vectors, context.embed)
        judged = [candidate for candidate, twin in zip(candidates, twin_of, strict=True) if twin is None]
        judges = self._looking_at(judged, incidents)
        taken: list[IntakeResult] = []
        made: set[str] = set()
        for candidate, vector, now, twin in zip(candidates, vectors, said_at, twin_of, strict=True):
            if twin is not None:
                taken.append(_duplicate(candidate, taken[twin].decision, twin, now))
                continue
            last = max(context.places.get(message_id, -1) for message_id in candidate.source_message_ids)
            conversation = Prefix(context.messages, last + 1)
            one = _IncomingCandidate(candidate, vector, now, context, conversation, made, incidents)
            try:
                outcome = judges._take(one)
                context.records.apply(outcome.changes)
            except UnrecordedReplyError:
                raise
            except LcmError as error:
                _log.warning("a candidate of category %s was not processed: %s", candidate.category, error)
                incidents["candidate not processed"] += 1
                outcome = IntakeResult(Decision(candidate, "fail", str(error), now))
            taken.append(outcome)
            made.update(
                change.document.document_id for change in outcome.changes if isinstance(change, DocumentCreated)
            )
        return taken

    def _looking_at(self, candidates: Sequence[Candidate], incidents: Counter[str]) -> "Intake":
        if not isinstance(self.admission, LooksAhead):
            return self
        return replace(self, admission=self.admission.looked_at(candidates, incidents=incidents))

    def _twins(
        self,
        candidates: Sequence[Candidate],
        vectors: Sequence[Vectors | None],
        embed: Callable[[Sequence[str]], Vectors],
    ) -> list[int | None]:
        """Twins are told by their texts alone, without the contents."""
        if contract_of(self.deduplication).is_off:
            return [None] * len(candidates)
        rows = list(vectors)
        longer = [i for i, candidate in enumerate(candidates) if candidate.content]
        if longer:
            own: Vectors | list[None]
            try:
                own = embed([candidates[i].text for i in longer])
            except UnrecordedReplyError:
                raise
            except LcmError as error:
                _log.warning("no twins are looked for among %d candidates: %s", len(longer), error)
                own = [None] * len(longer)
            for i, row in zip(longer, own, strict=True):
                rows[i] = None if row is None else row[None]
        known = next((row for row in rows if row is not None), None)
        if known is None:
            return [None] * len(candidates)
        none = np.zeros_like(known)
        return self.deduplication.twins(np.concatenate([none if row is None else row for row in rows]))

    def _take(self, one: _IncomingCandidate) -> IntakeResult:
        neighbours = one.context.records.known_at(one.now)
        if one.candidate.supersedes:
            neighbours = _Others(neighbours, frozenset(one.candidate.supersedes))
        assessment = None
        if not contract_of(self.admission).is_off:
            assessment = self.admission.assess(
                one.candidate, one.vector, neighbours, one.conversation, one.now, incidents=one.incidents
            )
            if not assessment.is_admitted:
                return IntakeResult(_decision(one, "reject", assessment.reason, assessment))
            if not assessment.is_durable:
                one = replace(one, candidate=replace(one.candidate, is_durable=False))
        if one.vector is None:
            judgement = Judgement("create", "no vector to compare with")
        else:
            judgement = self.deduplication.judge(one.candidate, one.vector, neighbours, incidents=one.incidents)
        return self._place(one, assessment, _allowed(one.candidate, judgement))

    def _place(self, one: _IncomingCandidate, assessment: Assessment | None, judgement: Judgement) -> IntakeResult:
        fresh = one.context.document_of(one.candidate, one.now)
        earlier = next((i for i in reversed(one.candidate.supersedes) if one.context.records.stands(i)), None)
        ends = () if earlier is None else (DocumentEnded(earlier, one.now),)
        if earlier is not None:
            fresh = replace(fresh, supersedes=earlier)
        known, label = judgement.matched, judgement.context_label
        if fresh.document_id in one.made_ids or (known is not None and known.document_id == fresh.document_id):
            decision = _decision(one, "duplicate", "that very document is there", assessment)
            return IntakeResult(replace(decision, matched_id=fresh.document_id))
        decision = _decision(one, judgement.action, judgement.reason, assessment, judgement)
        if judgement.action == "skip":
            return IntakeResult(decision)
        if judgement.action in ("merge", "supersede") and known is not None and (ends or known.scope != fresh.scope):
            # Its follower takes one place alone. Of another scope, it would take the document away from those who may
            # not read the candidate's scope, or tell them of it.
            why = "it takes another place already" if ends else "the document is of another scope"
            reason = f"{decision.reason}; {why}"
            return _created(replace(decision, action="create", reason=reason), fresh, one.vector, after=ends)
        if known is None or judgement.action == "create":
            return _created(decision, fresh, one.vector, after=ends)
        match judgement.action:
            case "support":
                change = DocumentAnnotated(known.document_id, _observed(known, label, "support", one.now))
                return IntakeResult(decision, (change,))
            case "merge":
                return self._merge(one, decision, fresh, known, label)
            case "supersede":
                ended = DocumentEnded(known.document_id, one.now)
                return _created(decision, _superseding(fresh, known, one.now), one.vector, after=(ended,))
            case "contextualize":
                document = _related(fresh, known, "contextualizes", label, one.now)
                return _created(decision, document, one.vector, after=ends)
            case _:
                change = DocumentAnnotated(known.document_id, _observed(known, label, "contradict", one.now))
                document = _related(fresh, known, "contradicts", label, one.now)
                return _created(decision, document, one.vector, before=(change,), after=ends)

    def _merge(
        self, one: _IncomingCandidate, decision: Decision, fresh: Document, known: Document, label: str | None
    ) -> IntakeResult:
        words = self.deduplication.merge(known, one.candidate)
        if words is None:
            # The original counts it as merged, and loses it.
            reason = f"{decision.reason}; it could not be merged into {known.document_id}"
            one.incidents["merge_no_record"] += 1
            kept = replace(decision, action="create", reason=reason, matched_id=None)
            return _created(kept, fresh, one.vector)
        document = _merged(fresh, known, words, label, one.now, self.merged_confidence)
        vector = one.context.embed([embedded_text(words.text, words.content)])
        return _created(decision, document, vector, after=(DocumentEnded(known.document_id, one.now),))


@dataclass(frozen=True, slots=True)
class _Others:
    """The documents that a candidate is compared with, without those whose place it takes: it repeats them."""

    neighbours: Neighbours
    left_out: Set[str]

    def nearest(
        self, vector: Vectors, k: int, *, active_only: bool, only: Callable[[DocumentSort], bool] | None = None
    ) -> list[Neighbour]:
        found = self.neighbours.nearest(vector, k + len(self.left_out), active_only=active_only, only=only)
        return [near for near in found if near.document.document_id not in self.left_out][:k]


def _allowed(candidate: Candidate, judgement: Judgement) -> Judgement:
    """The judgement as far as the category takes it: only some are merged, only some superseded; else create."""
    action, category = judgement.action, candidate.category
    if action in ("create", "skip"):
        return judgement
    if judgement.matched is None:
        return replace(judgement, action="create", reason=f"{action} of no document: {judgement.reason}")
    if action == "contradict" and category in VERSIONED and judgement.context_label == GENERAL:
        return replace(judgement, action="supersede", reason=f"contradicts in general: {judgement.reason}")
    is_refused = (action == "merge" and category not in MERGED | ALWAYS_MERGED) or (
        action == "supersede" and category not in VERSIONED
    )
    if is_refused:
        reason = f"{category} has no {action}: {judgement.reason}"
        return replace(judgement, action="create", reason=reason, matched=None)
    return judgement


def _created(
    decision: Decision,
    document: Document,
    vector: Vectors | None,
    before: tuple[Change, ...] = (),
    after: tuple[Change, ...] = (),
) -> IntakeResult:
    changes = (*before, DocumentCreated(document, vector), *after)
    return IntakeResult(replace(decision, document_id=document.document_id), changes)


def _duplicate(candidate: Candidate, first: Decision, place: int, now: datetime) -> IntakeResult:
    reason = f"says the same as candidate {place + 1} of its extraction"
    return IntakeResult(Decision(candidate, "duplicate", reason, now, matched_id=first.document_id or first.matched_id))


def _decision(
    one: _IncomingCandidate,
    action: Action,
    reason: str,
    assessment: Assessment | None,
    judgement: Judgement | None = None,
) -> Decision:
    audit: dict[str, Mapping[str, Any]] = {}
    if assessment is not None and assessment.audit:
        audit["admission"] = assessment.audit
    if judgement is not None and (judgement.audit or judgement.context_label):
        audit["deduplication"] = {**judgement.audit, "context_label": judgement.context_label}
    matched = None if judgement is None else judgement.matched
    return Decision(
        candidate=one.candidate,
        action=action,
        reason=reason,
        decided_at=one.now,
        matched_id=None if matched is None else matched.document_id,
        score=None if assessment is None else assessment.score,
        features={} if assessment is None else assessment.features,
        audit=audit,
    )


def _merged(
    fresh: Document, known: Document, words: Merged, label: str | None, now: datetime, confidence: float
) -> Document:
    """The document that says what both said, as old and as important as the known one, in its scope.

    Its temporal type and its expiry stay those of the known one, its decay tier is working again, and the context is
    confirmed once.

    Args:
        fresh: the document that the candidate alone would have become.
        known: the one that it is merged into.
        words: of both.
        label: the context that was observed; None = general.
        now: from when on it stands.
        confidence: of the result.
    """
    metadata = {**known.metadata, **fresh.metadata, **_topic(known, fresh)}
    return replace(
        fresh,
        document_id=_version_id(known, fresh),
        text=words.text,
        overview=words.overview,
        content=words.content,
        source_message_ids=tuple(dict.fromkeys((*known.source_message_ids, *fresh.source_message_ids))),
        created_at=known.created_at,
        scope=known.scope,
        importance=known.importance,
        confidence=confidence,
        temporal_type=known.temporal_type,
        valid_from=now,
        valid_until=known.valid_until,
        supersedes=known.document_id,
        last_accessed_at=known.last_accessed_at,
        access_count=known.access_count,
        decay_tier="working",
        metadata={**metadata, **_observed(known, label, "support", now)},
    )


def _superseding(fresh: Document, known: Document, now: datetime) -> Document:
    """The candidate's document in the place of the known one, with the same fact key."""
    return replace(
        fresh,
        valid_from=now,
        supersedes=known.document_id,
        metadata={**fresh.metadata, **_topic(known, fresh)},
    )


def _related(
    fresh: Document,
    known: Document,
    relation: Literal["contextualizes", "contradicts"],
    label: str | None,
    now: datetime,
) -> Document:
    """The candidate's document beside the known one; like the original's it never expires, and counts as just used."""
    return replace(
        fresh,
        temporal_type="static",
        valid_until=None,
        last_accessed_at=now,
        metadata={
            **fresh.metadata,
            "relations": appended(fresh.metadata.get("relations"), relation, known.document_id),
            "contexts": [label] if label else [],
        },
    )


def _observed(
    known: Document, label: str | None, event: Literal["support", "contradict"], now: datetime
) -> Mapping[str, Any]:
    """What one more observation in the context of that label changes in the metadata."""
    now_ms = (now - EPOCH) // _MILLISECOND
    support = observe(read_support(known.metadata.get("support_info"), now_ms), label, event, now_ms)
    return {"support_info": support_info(support)}


def _topic(known: Document, fresh: Document) -> dict[str, str]:
    key = known.metadata.get("fact_key") or fact_key(known.category, known.text) or fact_key(fresh.category, fresh.text)
    return {"fact_key": key} if key else {}


def _version_id(known: Document, fresh: Document) -> str:
    """A document ends once, so that it has one follower."""
    digest = hashlib.sha256(f"{known.document_id}\x00{fresh.document_id}".encode("utf-8", "surrogatepass"))
    return f"doc_{digest.hexdigest()[:16]}"
