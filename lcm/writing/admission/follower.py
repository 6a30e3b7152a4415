"""Documents that follow others: merged from them, in their place, or related to them.

Source: memory-lancedb-pro, smart-extractor. Its rows are changed in place; here what a document says never changes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from lcm.clock import EPOCH
from lcm.protocols.writing import Merged
from lcm.records.document import Document
from lcm.writing.lifecycle.fact_key import fact_key
from lcm.writing.lifecycle.relations import appended
from lcm.writing.lifecycle.support import observe, read_support, support_info

_MILLISECOND = timedelta(milliseconds=1)


def merged(
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
        metadata={**metadata, **observed(known, label, "support", now)},
    )


def superseding(fresh: Document, known: Document, now: datetime) -> Document:
    """The candidate's document in the place of the known one, with the same fact key."""
    return replace(
        fresh,
        valid_from=now,
        supersedes=known.document_id,
        metadata={**fresh.metadata, **_topic(known, fresh)},
    )


def related(
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


def observed(
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
