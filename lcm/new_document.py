"""Candidates become documents, and documents vectors: what both are known by."""

import hashlib
from collections.abc import Sequence

from lcm.records import GLOBAL_SCOPE, Candidate, Document, Message


def new_document(candidate: Candidate, sources: Sequence[Message], conversation_id: str) -> Document:
    """A candidate as a document: it exists from the last of its source messages on; its tokens are not counted yet."""
    instants = [message.created_at for message in sources if message.created_at is not None]
    return Document(
        document_id=document_id(candidate),
        text=candidate.text,
        source_message_ids=candidate.source_message_ids,
        conversation_id=conversation_id,
        session_id=sources[0].session_id,
        created_at=max(instants),
        kind=candidate.kind,
        category=candidate.category,
        scope=candidate.scope or GLOBAL_SCOPE,
        importance=candidate.importance,
        confidence=candidate.confidence,
        temporal_type=candidate.temporal_type,
        valid_until=candidate.valid_until,
        overview=candidate.overview,
        content=candidate.content,
        metadata=candidate.metadata,
    )


def embedded_text(text: str, content: str) -> str:
    """What is embedded of a record: its text, and its content behind it where it has any."""
    return f"{text} {content}" if content else text


def document_id(candidate: Candidate) -> str:
    """Opaque, and the same whenever the same words are made of the same messages."""
    words = [candidate.text, candidate.overview, candidate.content]
    parts = [candidate.kind, *(words if any(words[1:]) else words[:1]), *candidate.source_message_ids]
    digest = hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass"))
    return f"doc_{digest.hexdigest()[:16]}"
