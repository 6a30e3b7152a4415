"""memory-lancedb-pro's deduplication, and what each decision does to its store, onto ours.

The plugin changes rows in place, we let them end: a merge, here a new document in the place of an ended one, is told as
the updates of the old row.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from lcm.protocols.models import Vectors
from lcm.protocols.writing import Admission, Neighbour, Neighbours
from lcm.records.conversation import Message
from lcm.records.document import Candidate, Decision, Document
from lcm.writing.admission.amac import AdmitAll
from lcm.writing.admission.intake import (
    Change,
    DocumentAnnotated,
    DocumentCreated,
    DocumentEnded,
    Intake,
    IntakeContext,
    IntakeResult,
)
from lcm.writing.annotation import expiry, temporal_type
from lcm.writing.deduplication import NearestDocuments, atomic_preference, cosine_of_score, preference, token
from lcm.writing.lifecycle import DEFAULT_IMPORTANCE, appended, fact_key
from tests.golden.adapters.lancedb_pro.admission import (
    Listed,
    Replying,
    candidate_of,
    cosine,
    document_of,
    instant,
)
from tests.golden.components import component, fields_of, milliseconds
from tests.golden.originals import row_metadata as plugin_metadata
from tests.golden.originals.admission_settings import normalised

SCOPE, SESSION = "agent:main", "agent:main:s1"
ROW_KEYS = (
    "l0_abstract", "l1_overview", "l2_content", "memory_category", "tier", "access_count", "confidence", "source",
    "state", "memory_layer", "valid_from", "valid_until", "invalidated_at", "memory_temporal_type", "fact_key",
    "supersedes", "superseded_by", "relations", "contexts", "support_info", "source_session", "injected_count",
    "bad_recall_count",
)  # fmt: skip
"""The metadata that the vectors show."""
WORDS = "l0_abstract=text l1_overview=overview l2_content=content memory_category=category tier=decay_tier confidence"
OF_A_RELATED_ROW = ("valid_from", "valid_until", "memory_temporal_type", "fact_key")
"""The keys that the plugin leaves out of a row that contextualizes or contradicts another."""
ROW_CATEGORY = {
    "profile": "fact",
    "preferences": "preference",
    "entities": "entity",
    "events": "decision",
    "cases": "fact",
    "patterns": "other",
}
"""The older vocabulary of the plugin's rows."""


def batch_dedup(case: dict[str, Any]) -> dict[str, Any]:
    nearest = replace(_by_model(None, None), batch_threshold=case["threshold"])
    first = nearest.twins(_apart(case["vectors"]))
    surviving = [i for i, twin in enumerate(first) if twin is None]
    return {
        "surviving_indices": surviving,
        "duplicate_indices": [i for i, twin in enumerate(first) if twin is not None],
        "input_count": len(first),
        "output_count": len(surviving),
    }


def preference_slots(case: dict[str, Any]) -> dict[str, Any]:
    found, atomic = preference(case["text"]), atomic_preference(case["text"])
    return {
        "parsed": found
        and {
            "brand": found.brand,
            "items": list(found.items),
            "aggregate": not found.is_atomic,
        },
        "atomic_slot": atomic and {"type": "brand-item", "brand": atomic.brand, "item": atomic.items[0]},
        "token": token(case["text"]),
    }


def dedup_decision(case: dict[str, Any]) -> dict[str, Any]:
    near = [
        Neighbour(document_of(row["id"], row["text"], "other", 1.0), cosine_of_score(row["score"]))
        for row in case["similar"]
    ]
    nearest = _by_model(case["llm_reply"], None)
    found = nearest.judge(
        candidate_of(case["candidate"]), np.ones((1, 1), np.float32), Listed(near), incidents=Counter()
    )
    return {
        "decision": found.action,
        "match_id": None if found.matched is None else found.matched.document_id,
        "context_label": found.context_label,
    }


def process_candidate(case: dict[str, Any]) -> dict[str, Any]:
    now, rows = instant(case["now_ms"]), {row["id"]: row for row in case["existing"]}
    words = candidate_of(case["candidate"])
    candidate = replace(
        words,
        importance=DEFAULT_IMPORTANCE[words.category],
        temporal_type=temporal_type(words.content or words.text),
        valid_until=expiry(words.content or words.text, now),
        scope=SCOPE,
    )
    # What was said is not among the inputs: to go by the candidates that were refused, it supports none of them.
    said = Message("m", "user", "", SESSION, created_at=now)
    table = _Rows(list(map(_neighbour, case["existing"])), {row["id"]: row["vector"] for row in case["existing"]})
    around = IntakeContext([said], table, _new_document, _embed, {said.message_id: 0})
    vector = None if case["embedding_fails"] else _embed([words.text])
    intake = Intake(_admission(case["admission"]), _by_model(case["llm_reply"], case["merge_reply"]))
    (taken,) = intake.take_in([candidate], [vector], [now], around, incidents=Counter())
    return {"stats": _stats(taken.decision), "operations": _operations(taken, rows, case["now_ms"])}


@dataclass(frozen=True, slots=True)
class _Rows:
    """The plugin's table: the best of it first. Admission compares vectors, deduplication takes the search's scores."""

    rows: list[Neighbour]
    vectors: dict[str, list[float]]

    def known_at(self, now: datetime) -> Neighbours:
        return self

    def nearest(self, vector: Vectors, k: int, *, active_only: bool) -> list[Neighbour]:
        best = sorted(self.rows, key=lambda near: -near.cosine)[:k]
        if active_only:
            return best
        one = vector[0].tolist()
        return [replace(near, cosine=cosine(one, self.vectors[near.document.document_id])) for near in best]

    def apply(self, changes: Sequence[Change]) -> None:
        """Nothing follows the one candidate."""


def _by_model(judged: Any, merged: Any) -> NearestDocuments:
    nearest: NearestDocuments = component("deduplication=model", "deduplication")
    asked = {"judging": Replying(judged), "merging": Replying(merged)}
    return replace(nearest, **{part: replace(getattr(nearest, part), language_model=asked[part]) for part in asked})


def _admission(raw: Any) -> Admission:
    settings = normalised(raw)
    if not settings.is_enabled:
        return AdmitAll()
    assert settings.utility_mode == "off"
    return settings.component(component("admission=balanced", "admission").utility)


def _neighbour(row: dict[str, Any]) -> Neighbour:
    document = document_of(row["id"], row["text"], row["metadata"]["memory_category"], row["timestamp_ms"])
    whole = replace(document, scope=row["scope"], importance=row["importance"], metadata=row["metadata"])
    return Neighbour(whole, cosine_of_score(row["score"]))


def _new_document(candidate: Candidate, now: datetime) -> Document:
    names = "category scope importance confidence temporal_type valid_until overview content"
    taken_over = fields_of(candidate, names)
    return Document("new1", candidate.text, candidate.source_message_ids, SESSION, SESSION, now, **taken_over)


def _embed(texts: Sequence[str]) -> Vectors:
    return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))


def _stats(decision: Decision) -> dict[str, int]:
    stats = {"created": 0, "merged": 0, "skipped": 0}
    counters = {
        "merge": "merged",
        "skip": "skipped",
        "support": "supported",
        "supersede": "created superseded",
        "reject": "rejected",
    }
    return stats | dict.fromkeys(counters.get(decision.action, "created").split(), 1)


def _operations(taken: IntakeResult, rows: dict[str, Any], now_ms: float) -> list[dict[str, Any]]:
    admission, action = taken.decision.audit.get("admission"), taken.decision.action
    audit = {} if admission is None else {"admission_decision": admission["decision"]}
    operations: list[dict[str, Any]] = []
    for change in taken.changes:
        match change:
            case DocumentCreated(document) if action == "merge":
                operations += _merged(document, rows[document.supersedes], now_ms)
            case DocumentCreated(document):
                operations.append(_stored(document, is_related="contexts" in document.metadata))
            case DocumentAnnotated(document_id, patch):
                operations.append(_updated(rows[document_id], patch, now_ms))
            case DocumentEnded(document_id, at) if action == "supersede":
                operations.append(_superseded(rows[document_id], operations[-1], at, now_ms))
    audited = [row for row in operations if row["op"] == "store" or action in ("merge", "support")]
    for row in audited:
        row["metadata"] |= audit
    return operations


def _stored(document: Document, is_related: bool) -> dict[str, Any]:
    superseded = document.supersedes
    row = {
        **fields_of(document, WORDS),
        "access_count": document.access_count,
        "source": "auto-capture",
        "state": "confirmed",
        "memory_layer": "working",
        "valid_from": milliseconds(document.valid_from or document.created_at),
        "valid_until": document.valid_until and milliseconds(document.valid_until),
        "memory_temporal_type": document.temporal_type,
        "fact_key": fact_key(document.category, document.text),
        "supersedes": superseded,
        "relations": superseded and appended(None, "supersedes", superseded),
        "source_session": document.session_id,
        "injected_count": 0,
        "bad_recall_count": 0,
        **document.metadata,
    }
    return {
        "op": "store",
        "id": document.document_id,
        "text": document.text,
        "category": ROW_CATEGORY[document.category],
        "scope": document.scope,
        "importance": document.importance,
        "metadata": {
            key: value
            for key, value in row.items()
            if value is not None and not (is_related and key in OF_A_RELATED_ROW)
        },
    }


def _updated(row: dict[str, Any], patch: Any, now_ms: float, text: str | None = None) -> dict[str, Any]:
    entry = {key: row[key] for key in ("text", "category", "timestamp_ms")}
    built = plugin_metadata.build(row["metadata"], patch, **entry, now_ms=now_ms)
    update = {
        "op": "update",
        "id": row["id"],
        "re_embedded": text is not None,
        "metadata": {key: built[key] for key in ROW_KEYS if key in built},
    }
    return update if text is None else {**update, "text": text}


def _merged(document: Document, row: dict[str, Any], now_ms: float) -> list[dict[str, Any]]:
    """First the words, then the observation."""
    words = fields_of(document, WORDS)
    observed = {**words, "support_info": document.metadata["support_info"]}
    return [_updated(row, words, now_ms, document.text), _updated(row, observed, now_ms)]


def _superseded(row: dict[str, Any], stored: dict[str, Any], at: datetime, now_ms: float) -> dict[str, Any]:
    follower = stored["id"]
    patch = {
        "fact_key": stored["metadata"].get("fact_key"),
        "invalidated_at": milliseconds(at),
        "superseded_by": follower,
        "relations": appended(row["metadata"].get("relations"), "superseded_by", follower),
    }
    return _updated(row, {key: value for key, value in patch.items() if value is not None}, now_ms)


def _apart(vectors: Sequence[Sequence[float]]) -> Any:
    """Vectors of different lengths side by side: each length has coordinates of its own, so that they share none."""
    lengths = sorted({len(vector) for vector in vectors})
    starts = dict(zip(lengths, np.cumsum([0, *lengths]), strict=False))
    rows = np.zeros((len(vectors), sum(lengths)))
    for i, vector in enumerate(vectors):
        rows[i, starts[len(vector)] : starts[len(vector)] + len(vector)] = vector
    return rows
