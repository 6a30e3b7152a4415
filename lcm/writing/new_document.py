"""Candidates become documents, and documents vectors: what both are known by."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from lcm.clock import EPOCH
from lcm.encoding import well_formed
from lcm.records.conversation import Message
from lcm.records.document import GLOBAL_SCOPE, AuthoredNode, Candidate, Document
from lcm.records.summary import GuidanceShard


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
        role=sources[0].role,
        is_durable=candidate.is_durable,
    )


def document_of_shard(shard: GuidanceShard, message: Message, scope: str) -> Document:
    """A protected message as a document: it exists since it was protected."""
    candidate = Candidate(
        shard.text,
        (shard.message_id,),
        kind="guidance",
        scope=scope,
        metadata={"protected_by": shard.protected_by, "provenance": shard.provenance, "stability": shard.stability},
    )
    document = new_document(candidate, [replace(message, created_at=shard.created_at)], shard.conversation_id)
    return replace(document, authority=shard.stability, tokens=shard.tokens)


def document_of_node(node: AuthoredNode) -> Document:
    """An authored block as a document: it has always been there."""
    return Document(
        document_id=node.node_id,
        text=node.text,
        source_message_ids=(),
        conversation_id="",
        session_id="",
        created_at=EPOCH,
        kind="authored",
        tokens=node.tokens,
        metadata={"source": node.source, "position": node.position, "ordinal": node.ordinal},
        authority=node.authority,
        hop_targets=node.hop_targets,
    )


def embedded_text(text: str, content: str) -> str:
    """What is embedded of a record: its text, and its content behind it where it has any."""
    return f"{text} {content}" if content else text


def shown_words(record: Candidate | Document) -> dict[str, str]:
    """The words of a record as a language model is shown them."""
    return {
        "abstract": well_formed(record.text),
        "overview": well_formed(record.overview),
        "content": well_formed(record.content),
    }


def document_id(candidate: Candidate) -> str:
    """Opaque, and the same whenever the same words are made of the same messages."""
    words = [candidate.text, candidate.overview, candidate.content]
    parts = [candidate.kind, *(words if any(words[1:]) else words[:1]), *candidate.source_message_ids]
    digest = hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass"))
    return f"doc_{digest.hexdigest()[:16]}"
