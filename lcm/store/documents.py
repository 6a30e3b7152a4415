"""Documents, the messages that they stand for and their lives, as rows and as one frame."""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from lcm.clock import format_instant, parse_instant
from lcm.encoding import mapping_json, optional_instant, require_id, to_json, well_formed
from lcm.errors import StoreError
from lcm.records.document import DEFAULT_RATING, Document
from lcm.store.frames import INSTANT, frame

DOCUMENT_SCHEMA: dict[str, pl.DataType] = {
    "document_id": pl.String(),
    "text": pl.String(),
    "overview": pl.String(),
    "content": pl.String(),
    "kind": pl.String(),
    "category": pl.String(),
    "scope": pl.String(),
    "conversation_id": pl.String(),
    "session_id": pl.String(),
    "source_message_ids": pl.List(pl.String()),
    "created_at": INSTANT,
    "valid_from": INSTANT,
    "invalidated_at": INSTANT,
    "supersedes": pl.String(),
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
    "role": pl.String(),
    "is_durable": pl.Boolean(),
    "authority": pl.Float64(),
    "decay_rate": pl.Float64(),
    "hop_targets": pl.List(pl.String()),
}
"""The columns of `Store.documents`. `length_utf16` counts the UTF-16 code units of `text`; `seq` is the place,
from 1, of the first source message in its conversation, `role` its role: null of what was authored or dreamt.
`valid_from` is never null."""

_BATCH = 500
_KNOWN_FROM = "coalesce(d.valid_from, d.created_at)"

_SOURCES = """(SELECT json_group_array(message_key) FROM (
          SELECT m.message_key FROM document_messages s JOIN messages m USING (message_id)
          WHERE s.document_id = d.document_id ORDER BY s.ordinal))"""
_FIRST_SOURCE = """(SELECT m.{column} FROM document_messages s JOIN messages m USING (message_id)
        WHERE s.document_id = d.document_id ORDER BY s.ordinal LIMIT 1)"""
_OF_SOURCES = {
    "source_message_ids": _SOURCES,
    "seq": _FIRST_SOURCE.format(column="seq"),
    "role": _FIRST_SOURCE.format(column="role"),
}
_CONVERSATION = "coalesce(c.session_key, '')"
_OTHERS = {
    "conversation_id": _CONVERSATION,
    "valid_from": _KNOWN_FROM,
    **_OF_SOURCES,
}
"""Columns that are more than one of `documents`."""
_STORED = {name: kind for name, kind in DOCUMENT_SCHEMA.items() if name != "length_utf16"}
_ASTRAL = pl.col("text").str.count_matches(r"[\x{10000}-\x{10FFFF}]")
_WHOLE = [
    name if name in _STORED else (pl.col("text").str.len_chars() + _ASTRAL).cast(kind).alias(name)
    for name, kind in DOCUMENT_SCHEMA.items()
]
"""`DOCUMENT_SCHEMA` of what is stored: SQLite counts no code units, and a function of ours would swallow Ctrl-C."""
_JOINED = "FROM documents d LEFT JOIN conversations c USING (conversation_id)"
_LINKS = """
SELECT s.document_id, s.ordinal, m.message_key, m.seq, m.role
FROM document_messages s JOIN messages m USING (message_id)
"""
_LINK_SCHEMA = {
    "document_id": pl.String(),
    "ordinal": pl.Int64(),
    "source_message_ids": pl.String(),
    "seq": pl.Int64(),
    "role": pl.String(),
}
_COLUMNS = (
    "document_id", "conversation_id", "session_id", "kind", "text", "overview", "content", "category", "scope",
    "importance", "confidence", "temporal_type", "valid_from", "valid_until", "invalidated_at", "supersedes",
    "last_accessed_at", "access_count", "decay_tier", "tokens", "metadata", "created_at",
    "is_durable", "authority", "decay_rate", "hop_targets",
)  # fmt: skip
_INSERT = f"INSERT INTO documents ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608


def add_documents(connection: sqlite3.Connection, documents: Iterable[Document]) -> int:
    """Add what is not stored yet, inside the caller's transaction; see `Store.add_documents`."""
    documents, new = list(documents), dict[str, Document]()
    stored = _stored_ids(connection, [document.document_id for document in documents])
    for document in documents:
        known = None
        if (twin := new.get(document.document_id)) is not None:
            known = _statement(twin)
        elif document.document_id in stored:
            known = _stored_statement(connection, document.document_id)
        if known is None:
            new[document.document_id] = document
        elif known != (statement := _statement(document)):
            changed = ", ".join(name for name in known if known[name] != statement[name])
            raise StoreError(
                f"document {document.document_id!r} is stored with another {changed};"
                " what a document says never changes: give the other one its own id"
            )
    conversations = _Conversations(connection)
    rows = [_encode(conversations, document) for document in new.values()]
    messages = _message_rows(connection, new.values())
    links = [link for document in new.values() for link in _links(messages, document)]
    try:
        connection.executemany(_INSERT, rows)
    except sqlite3.IntegrityError as err:
        raise StoreError(f"a document has a value that its column does not take: {err}") from err
    connection.executemany("INSERT INTO document_messages (document_id, message_id, ordinal) VALUES (?, ?, ?)", links)
    return len(new)


def document_frame(connection: sqlite3.Connection, document_ids: Sequence[str] | None) -> pl.DataFrame:
    """Read documents as `DOCUMENT_SCHEMA`; see `Store.documents`."""
    if document_ids is None:
        return _every_document(connection)
    read = connection.execute(
        f"SELECT {_selected(_STORED)} {_JOINED} "  # noqa: S608 (our own constants)
        f"WHERE d.document_id IN (SELECT value FROM json_each(?)) ORDER BY {_KNOWN_FROM}, d.rowid",
        (to_json(list(document_ids)),),
    )
    return frame(read, _STORED).select(_WHOLE)


def _every_document(connection: sqlite3.Connection) -> pl.DataFrame:
    """As one by one, but the messages of all documents are read at once: to look them up takes most of the time."""
    own = {name: kind for name, kind in _STORED.items() if name not in _OF_SOURCES}
    documents = frame(connection.execute(f"SELECT {_selected(own)} {_JOINED} ORDER BY d.rowid"), own)
    links = frame(connection.execute(_LINKS), _LINK_SCHEMA).sort("ordinal", maintain_order=True)
    sources = links.group_by("document_id").agg("source_message_ids", pl.col("seq", "role").first())
    described = documents.join(sources, on="document_id", how="left", maintain_order="left")
    whole = described.with_columns(pl.col("source_message_ids").fill_null([])).select(_WHOLE)
    # Of one talk they come in order: sorting would copy all that was said.
    return whole if whole["valid_from"].is_sorted() else whole.sort("valid_from", maintain_order=True)


def _selected(names: Iterable[str]) -> str:
    return ", ".join(_OTHERS.get(name, f"d.{name}") for name in names)


def read_document(connection: sqlite3.Connection, document_id: str, scopes: Sequence[str] | None = None) -> Document:
    """Read one document whole; see `Store.document`."""
    columns = ", ".join(f"d.{name}" for name in _COLUMNS if name != "conversation_id")
    readable = "TRUE" if scopes is None else f"d.scope IN ({', '.join('?' * len(scopes))})"
    row = connection.execute(
        f"SELECT {_CONVERSATION}, {_SOURCES}, {_OF_SOURCES['role']}, {columns} "
        f"{_JOINED} WHERE d.document_id = ? AND {readable}",
        (document_id, *(scopes or ())),
    ).fetchone()
    if row is None:
        raise StoreError(f"there is no document {document_id!r} that may be read")
    conversation_id, sources, role, *rest = row
    values = dict(zip((name for name in _COLUMNS if name != "conversation_id"), rest, strict=True))
    for name in ("created_at", "valid_from", "valid_until", "invalidated_at", "last_accessed_at"):
        values[name] = None if values[name] is None else parse_instant(values[name])
    for name in ("importance", "confidence"):  # as `lcm.memory.live_documents` has it
        values[name] = values[name] if math.isfinite(values[name]) else DEFAULT_RATING
    values["metadata"] = json.loads(values["metadata"])
    values["is_durable"] = bool(values["is_durable"])
    values["hop_targets"] = tuple(json.loads(values["hop_targets"]))
    return Document(
        conversation_id=conversation_id, source_message_ids=tuple(json.loads(sources)), role=role or "", **values
    )


def history(connection: sqlite3.Connection, document_id: str) -> list[str]:
    """The ids of the documents in whose place this one came to stand, and of those that followed it, oldest first."""
    rows = connection.execute(
        """
        WITH RECURSIVE
          older(document_id, step) AS (
            SELECT :id, 0 UNION ALL
            SELECT d.supersedes, step - 1 FROM older JOIN documents d USING (document_id)
            WHERE d.supersedes IS NOT NULL),
          newer(document_id, step) AS (
            SELECT :id, 0 UNION ALL
            SELECT d.document_id, step + 1 FROM newer n JOIN documents d ON d.supersedes = n.document_id)
        SELECT document_id FROM (SELECT * FROM older UNION SELECT * FROM newer)
        JOIN documents USING (document_id) ORDER BY step
        """,
        {"id": document_id},
    )
    return [found for (found,) in rows]


def end_documents(connection: sqlite3.Connection, ends: Iterable[tuple[str, datetime]]) -> None:
    """Another document stands in their place from then on."""
    for document_id, at in ends:
        changed = connection.execute(
            "UPDATE documents SET invalidated_at = ? WHERE document_id = ? AND invalidated_at IS NULL",
            (format_instant(at), document_id),
        )
        if changed.rowcount != 1:
            raise StoreError(f"document {document_id!r} is unknown or has ended already: a document ends once")


def annotate_documents(connection: sqlite3.Connection, notes: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Put keys into the metadata of documents; other keys stay."""
    for document_id, metadata in notes:
        known = read_document(connection, document_id).metadata
        connection.execute(
            "UPDATE documents SET metadata = ? WHERE document_id = ?",
            (mapping_json({**known, **metadata}), document_id),
        )


def update_use(connection: sqlite3.Connection, use: pl.DataFrame) -> None:
    """Write columns access_count, last_accessed_at and decay_tier of documents."""
    rows = [
        (count, optional_instant(accessed_at), tier, document_id)
        for document_id, count, accessed_at, tier in use.select(
            "document_id", "access_count", "last_accessed_at", "decay_tier"
        ).iter_rows()
    ]
    connection.executemany(
        "UPDATE documents SET access_count = ?, last_accessed_at = ?, decay_tier = ? WHERE document_id = ?", rows
    )


def _statement(document: Document) -> dict[str, Any]:
    """What a document says: fixed for good. Its ratings and its use may change after it is stored."""
    return {
        "text": well_formed(document.text),
        "overview": well_formed(document.overview),
        "content": well_formed(document.content),
        "kind": well_formed(document.kind),
        "scope": document.scope,
        "conversation_id": document.conversation_id,
        "session_id": document.session_id,
        "created_at": format_instant(document.created_at),
        "valid_from": optional_instant(document.valid_from),
        "supersedes": document.supersedes,
        "source_message_ids": document.source_message_ids,
    }


def _stored_ids(connection: sqlite3.Connection, document_ids: Sequence[str]) -> set[str]:
    """Those of these ids that are taken."""
    wanted = [require_id(document_id, "document id") for document_id in document_ids]
    select = "SELECT document_id FROM documents WHERE document_id IN"
    return {found for (found,) in _of_each(connection, select, wanted)}


def _stored_statement(connection: sqlite3.Connection, document_id: str) -> dict[str, Any]:
    stored = connection.execute(
        """
        SELECT d.text, d.overview, d.content, d.kind, d.scope, coalesce(c.session_key, ''), d.session_id, d.created_at,
               d.valid_from, d.supersedes
        FROM documents d LEFT JOIN conversations c USING (conversation_id) WHERE d.document_id = ?
        """,
        (document_id,),
    ).fetchone()
    sources = connection.execute(
        """
        SELECT m.message_key FROM document_messages s JOIN messages m USING (message_id)
        WHERE s.document_id = ? ORDER BY s.ordinal
        """,
        (document_id,),
    )
    names = (
        "text", "overview", "content", "kind", "scope", "conversation_id", "session_id", "created_at",
        "valid_from", "supersedes",
    )  # fmt: skip
    return dict(zip(names, stored, strict=True)) | {"source_message_ids": tuple(key for (key,) in sources)}


def _encode(conversations: "_Conversations", document: Document) -> tuple[object, ...]:
    conversation = _conversation_row(conversations, document)
    if document.access_count < 0:
        raise StoreError(
            f"document {document.document_id!r} has access_count {document.access_count}; it counts from 0"
        )
    for name in ("importance", "confidence", "authority", "decay_rate"):
        if not 0 <= getattr(document, name) <= 1:
            raise StoreError(
                f"document {document.document_id!r} has {name} {getattr(document, name)}; give a number in [0, 1]"
            )
    return (
        document.document_id,
        conversation,
        document.session_id if conversation is None else require_id(document.session_id, "session id"),
        well_formed(document.kind),
        well_formed(document.text),
        well_formed(document.overview),
        well_formed(document.content),
        well_formed(document.category),
        require_id(document.scope, "scope"),
        document.importance,
        document.confidence,
        document.temporal_type,
        optional_instant(document.valid_from),
        optional_instant(document.valid_until),
        optional_instant(document.invalidated_at),
        document.supersedes,
        optional_instant(document.last_accessed_at),
        document.access_count,
        document.decay_tier,
        document.tokens,
        mapping_json(document.metadata),
        format_instant(document.created_at),
        document.is_durable,
        document.authority,
        document.decay_rate,
        to_json(list(document.hop_targets)),
    )


class _Conversations(dict[str, int | None]):
    """The keys of active conversations by their ids, each looked up once; None where there is none."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __missing__(self, conversation_id: str) -> int | None:
        found = self._connection.execute(
            "SELECT conversation_id FROM conversations WHERE session_key = ? AND active = 1",
            (require_id(conversation_id, "conversation id"),),
        ).fetchone()
        self[conversation_id] = None if found is None else found[0]
        return self[conversation_id]


def _conversation_row(conversations: _Conversations, document: Document) -> int | None:
    """The key of a document's conversation; None of what no message says: it was authored or dreamt."""
    if not (document.conversation_id or document.session_id or document.source_message_ids):
        return None
    found = conversations[document.conversation_id]
    if found is None:
        raise StoreError(
            f"document {document.document_id!r} names the unknown conversation {document.conversation_id!r};"
            " ingest it first"
        )
    return found


def _message_rows(connection: sqlite3.Connection, documents: Iterable[Document]) -> dict[str, int]:
    """The keys of the messages that documents name, by their ids; of an unknown one none."""
    named = {require_id(one, "message id") for document in documents for one in document.source_message_ids}
    select = "SELECT message_key, message_id FROM messages WHERE message_key IN"
    return dict(_of_each(connection, select, sorted(named)))


def _of_each(connection: sqlite3.Connection, select: str, values: Sequence[str]) -> Iterator[Any]:
    """The rows of a statement that ends with IN, for some values at a time."""
    for start in range(0, len(values), _BATCH):
        some = values[start : start + _BATCH]
        yield from connection.execute(f"{select} ({', '.join('?' * len(some))})", some).fetchall()


def _links(messages: Mapping[str, int], document: Document) -> Iterator[tuple[str, int, int]]:
    sources = document.source_message_ids
    if not sources and not document.conversation_id:
        return
    if not sources or len(set(sources)) < len(sources):
        raise StoreError(
            f"document {document.document_id!r} must name its source messages, at least one and each once,"
            f" got {list(sources)!r}"
        )
    for ordinal, key in enumerate(sources):
        if key not in messages:
            raise StoreError(
                f"document {document.document_id!r} names the unknown source message {key!r};"
                " ingest its conversation first"
            )
        yield document.document_id, messages[key], ordinal
