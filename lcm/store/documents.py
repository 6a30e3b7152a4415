"""Documents and the messages that they stand for, as rows and as one frame."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from lcm.encoding import mapping_json, optional_instant, require_id, well_formed
from lcm.errors import StoreError
from lcm.instants import format_instant
from lcm.records import Document
from lcm.store.frames import INSTANT, frame

DOCUMENT_SCHEMA: dict[str, pl.DataType] = {
    "document_id": pl.String(),
    "text": pl.String(),
    "kind": pl.String(),
    "category": pl.String(),
    "scope": pl.String(),
    "conversation_id": pl.String(),
    "session_id": pl.String(),
    "source_message_ids": pl.List(pl.String()),
    "created_at": INSTANT,
    "last_accessed_at": INSTANT,
    "valid_until": INSTANT,
    "access_count": pl.Int64(),
    "importance": pl.Float64(),
    "confidence": pl.Float64(),
    "decay_tier": pl.String(),
    "temporal_type": pl.String(),
    "tokens": pl.Int64(),
    "length_utf16": pl.Int64(),
    "seq": pl.Int64(),
}
"""The columns of `Store.documents`. `length_utf16` counts the UTF-16 code units of `text`; `seq` is the place,
from 1, of the first source message in its conversation."""

_SELECT = """
SELECT d.document_id, d.text, d.kind, d.category, d.scope, c.session_key, d.session_id,
       (SELECT json_group_array(message_key) FROM (
          SELECT m.message_key FROM document_messages s JOIN messages m USING (message_id)
          WHERE s.document_id = d.document_id ORDER BY s.ordinal)),
       d.created_at, d.last_accessed_at, d.valid_until, d.access_count, d.importance, d.confidence,
       d.decay_tier, d.temporal_type, d.tokens, length_utf16(d.text),
       (SELECT m.seq FROM document_messages s JOIN messages m USING (message_id)
        WHERE s.document_id = d.document_id ORDER BY s.ordinal LIMIT 1)
FROM documents d JOIN conversations c USING (conversation_id)
WHERE """


def add_documents(connection: sqlite3.Connection, documents: Iterable[Document]) -> int:
    """Add what is not stored yet, inside the caller's transaction; see `Store.add_documents`."""
    new: dict[str, Document] = {}
    for document in documents:
        twin = new.get(document.document_id)
        known = _statement(twin) if twin else _stored_statement(connection, document.document_id)
        if known is None:
            new[document.document_id] = document
        elif known != (statement := _statement(document)):
            changed = ", ".join(name for name in known if known[name] != statement[name])
            raise StoreError(
                f"document {document.document_id!r} is stored with another {changed};"
                " what a document says never changes: give the other one its own id"
            )
    rows = [_encode(connection, document) for document in new.values()]
    links = [link for document in new.values() for link in _links(connection, document)]
    try:
        connection.executemany(
            """
            INSERT INTO documents (document_id, conversation_id, session_id, kind, text, category, scope,
                                   importance, confidence, temporal_type, valid_until, last_accessed_at,
                                   access_count, decay_tier, tokens, metadata, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            rows,
        )
    except sqlite3.IntegrityError as err:
        raise StoreError(f"a document has a value that its column does not take: {err}") from err
    connection.executemany("INSERT INTO document_messages (document_id, message_id, ordinal) VALUES (?, ?, ?)", links)
    return len(new)


def document_frame(
    connection: sqlite3.Connection, scopes: Sequence[str] | None, created_up_to: datetime | None
) -> pl.DataFrame:
    """Read documents as `DOCUMENT_SCHEMA`; see `Store.documents`."""
    conditions = ["TRUE"]
    values: list[str] = []
    if scopes is not None:
        conditions.append(f"d.scope IN ({', '.join('?' * len(scopes))})")
        values += scopes
    if created_up_to is not None:
        conditions.append("d.created_at <= ?")
        values.append(format_instant(created_up_to))
    read = connection.execute(_SELECT + " AND ".join(conditions) + " ORDER BY d.created_at, d.rowid", values)
    return frame(read, DOCUMENT_SCHEMA)


def _statement(document: Document) -> dict[str, Any]:
    """What a document says: fixed for good. Its ratings and its use may change after it is stored."""
    return {
        "text": well_formed(document.text),
        "kind": well_formed(document.kind),
        "scope": document.scope,
        "conversation_id": document.conversation_id,
        "session_id": document.session_id,
        "created_at": format_instant(document.created_at),
        "source_message_ids": document.source_message_ids,
    }


def _stored_statement(connection: sqlite3.Connection, document_id: str) -> dict[str, Any] | None:
    stored = connection.execute(
        """
        SELECT d.text, d.kind, d.scope, c.session_key, d.session_id, d.created_at
        FROM documents d JOIN conversations c USING (conversation_id) WHERE d.document_id = ?
        """,
        (require_id(document_id, "document id"),),
    ).fetchone()
    if stored is None:
        return None
    sources = connection.execute(
        """
        SELECT m.message_key FROM document_messages s JOIN messages m USING (message_id)
        WHERE s.document_id = ? ORDER BY s.ordinal
        """,
        (document_id,),
    )
    names = ("text", "kind", "scope", "conversation_id", "session_id", "created_at")
    return dict(zip(names, stored, strict=True)) | {"source_message_ids": tuple(key for (key,) in sources)}


def _encode(connection: sqlite3.Connection, document: Document) -> tuple[object, ...]:
    conversation = connection.execute(
        "SELECT conversation_id FROM conversations WHERE session_key = ? AND active = 1",
        (require_id(document.conversation_id, "conversation id"),),
    ).fetchone()
    if conversation is None:
        raise StoreError(
            f"document {document.document_id!r} names the unknown conversation {document.conversation_id!r};"
            " ingest it first"
        )
    return (
        document.document_id,
        conversation[0],
        require_id(document.session_id, "session id"),
        well_formed(document.kind),
        well_formed(document.text),
        well_formed(document.category),
        require_id(document.scope, "scope"),
        document.importance,
        document.confidence,
        document.temporal_type,
        optional_instant(document.valid_until),
        optional_instant(document.last_accessed_at),
        document.access_count,
        document.decay_tier,
        document.tokens,
        mapping_json(document.metadata),
        format_instant(document.created_at),
    )


def _links(connection: sqlite3.Connection, document: Document) -> Iterator[tuple[str, int, int]]:
    sources = document.source_message_ids
    if not sources or len(set(sources)) < len(sources):
        raise StoreError(
            f"document {document.document_id!r} must name its source messages, at least one and each once,"
            f" got {list(sources)!r}"
        )
    for ordinal, key in enumerate(sources):
        message = connection.execute(
            "SELECT message_id FROM messages WHERE message_key = ?", (require_id(key, "message id"),)
        ).fetchone()
        if message is None:
            raise StoreError(
                f"document {document.document_id!r} names the unknown source message {key!r};"
                " ingest its conversation first"
            )
        yield document.document_id, message[0], ordinal
