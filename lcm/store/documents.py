"""Documents, the messages that they stand for and their lives, as rows and as one frame; the decisions on candidates,
audit rows that keep every candidate, whatever became of it; protected messages, and the blocks of authored files."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any

import polars as pl

from lcm.clock import format_instant, parse_instant
from lcm.encoding import mapping_json, optional_instant, require_id, to_json, well_formed
from lcm.errors import StoreError
from lcm.records.document import DEFAULT_RATING, GLOBAL_SCOPE, AuthoredNode, Candidate, Decision, Document
from lcm.records.summary import GuidanceShard
from lcm.store.conversations import active_conversation
from lcm.store.sqlite import INSTANT, LISTED, frame, insertion, listed, selected, value

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

DECISION_SCHEMA: dict[str, pl.DataType] = {
    "conversation_id": pl.String(),
    "decided_at": INSTANT,
    "action": pl.String(),
    "reason": pl.String(),
    "category": pl.String(),
    "scope": pl.String(),
    "document_id": pl.String(),
    "matched_id": pl.String(),
    "score": pl.Float64(),
    "features": pl.String(),
    "audit": pl.String(),
    "candidate": pl.String(),
}
"""The columns of `Store.decisions`; the last three are JSON."""

_NAMES_DOCUMENTS = ("$.admission.matched_existing_memory_ids", "$.admission.compared_existing_memory_ids")
"""What of an audit names documents that a writer could read, and a reader of the audit perhaps not."""

_LINKS = "document_messages s JOIN messages m USING (message_id)"
_OF_DOCUMENT = f"FROM {_LINKS} WHERE s.document_id = d.document_id ORDER BY s.ordinal"
_OF_SOURCES = {
    "source_message_ids": f"(SELECT json_group_array(message_key) FROM (SELECT m.message_key {_OF_DOCUMENT}))",  # noqa: S608 (our own constants)
    "seq": f"(SELECT m.seq {_OF_DOCUMENT} LIMIT 1)",
    "role": f"(SELECT m.role {_OF_DOCUMENT} LIMIT 1)",
}
_RATINGS = {name: f"iif(abs(d.{name}) < 9e999, d.{name}, {DEFAULT_RATING})" for name in ("importance", "confidence")}
"""What is read of those: a foreign hand may have stored what is no number."""
_OTHERS = {
    **_RATINGS,
    "conversation_id": "coalesce(c.session_key, '')",
    "valid_from": "coalesce(d.valid_from, d.created_at)",
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
_INSTANTS = ("created_at", "valid_from", "valid_until", "invalidated_at", "last_accessed_at")
_OWN = (
    "document_id", "session_id", "kind", "text", "overview", "content", "category", "scope", "importance",
    "confidence", "temporal_type", "valid_from", "valid_until", "invalidated_at", "supersedes", "last_accessed_at",
    "access_count", "decay_tier", "tokens", "metadata", "created_at", "is_durable", "authority", "decay_rate",
    "hop_targets",
)  # fmt: skip
"""Of `documents`, named as the fields of a `Document`; the conversation stands there by its key."""
_own = attrgetter(*_OWN)
_encoded: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("kind", "text", "overview", "content", "category"), well_formed),
    **dict.fromkeys(_INSTANTS, optional_instant),
    "metadata": mapping_json,
    "hop_targets": to_json,
}
_ENCODED = [_encoded.get(name) for name in _OWN]
_OWN_SHARD = [field.name for field in fields(GuidanceShard)][2:]
"""Of `guidance_shards`, but whose they are."""
_NODE = [field.name for field in fields(AuthoredNode)]


def add_documents(connection: sqlite3.Connection, documents: Iterable[Document]) -> int:
    """Store documents; one that is stored already is left as it is.

    Returns:
        How many were new.

    Raises:
        StoreError: if an id is stored with another text, source, scope, kind, session or instant, or a
            document names an unknown conversation or message; none is written.
    """
    documents, new = list(documents), dict[str, Document]()
    ids = [require_id(document.document_id, "document id") for document in documents]
    stored = {found for (found,) in _by_ids(connection, "document_id", "documents", "document_id", ids)}
    for document in documents:
        known = new.get(document.document_id)
        if known is None and document.document_id in stored:
            known = read_document(connection, document.document_id)
        if known is None:
            new[document.document_id] = document
        elif (said := _statement(known)) != (statement := _statement(document)):
            changed = ", ".join(name for name in said if said[name] != statement[name])
            raise StoreError(
                f"document {document.document_id!r} is stored with another {changed};"
                " what a document says never changes: give the other one its own id"
            )
    named = {require_id(document.conversation_id, "conversation id") for document in new.values()}
    conversations = {name: active_conversation(connection, name) for name in named}
    sources = {require_id(one, "message id") for document in new.values() for one in document.source_message_ids}
    messages = dict(_by_ids(connection, "message_key, message_id", "messages", "message_key", sorted(sources)))
    rows = [_encode(conversations, document) for document in new.values()]
    links = [link for document in new.values() for link in _links(messages, document)]
    try:
        connection.executemany(insertion("documents", ("conversation_id", *_OWN)), rows)
    except sqlite3.IntegrityError as err:
        raise StoreError(f"a document has a value that its column does not take: {err}") from err
    connection.executemany(insertion("document_messages", ("document_id", "message_id", "ordinal")), links)
    return len(new)


def document_frame(connection: sqlite3.Connection, document_ids: Sequence[str] | None = None) -> pl.DataFrame:
    """Read `DOCUMENT_SCHEMA` by `valid_from`, ties in the order of adding; of these documents, None = of all."""
    if document_ids is None:
        documents = _every_document(connection)
    else:
        select = f"SELECT {selected(_STORED, _OTHERS, 'd')} {_JOINED} WHERE d.rowid {LISTED} ORDER BY d.rowid"
        numbers = [number for (number,) in _by_ids(connection, "rowid", "documents", "document_id", document_ids)]
        documents = frame(connection.execute(select, (to_json(numbers),)), _STORED)
    whole = documents.select(_WHOLE)
    # Of one talk they come in order: sorting would copy all that was said.
    return whole if whole["valid_from"].is_sorted() else whole.sort("valid_from", maintain_order=True)


def count_unrated(connection: sqlite3.Connection) -> int:
    """How many documents have a rating that is no number, for which `DEFAULT_RATING` stands in."""
    return int(
        value(connection, "SELECT count(*) FROM documents WHERE NOT max(abs(importance), abs(confidence)) < 9e999")
    )


def _every_document(connection: sqlite3.Connection) -> pl.DataFrame:
    """As one by one, but the messages of all documents are read at once: to look them up takes most of the time."""
    own = {name: kind for name, kind in _STORED.items() if name not in _OF_SOURCES}
    documents = frame(connection.execute(f"SELECT {selected(own, _OTHERS, 'd')} {_JOINED} ORDER BY d.rowid"), own)
    linked = {"document_id": pl.String(), "ordinal": pl.Int64(), **{name: _STORED[name] for name in _OF_SOURCES}}
    linked["source_message_ids"] = pl.String()
    links = frame(
        connection.execute(f"SELECT s.document_id, s.ordinal, m.message_key, m.seq, m.role FROM {_LINKS}"),  # noqa: S608
        linked,
    )
    sources = (
        links.sort("ordinal", maintain_order=True)
        .group_by("document_id")
        .agg("source_message_ids", pl.col("seq", "role").first())
    )
    described = documents.join(sources, on="document_id", how="left", maintain_order="left")
    return described.with_columns(pl.col("source_message_ids").fill_null([]))


def _by_ids(
    connection: sqlite3.Connection, columns: str, table: str, key: str, ids: Collection[str]
) -> Iterator[tuple[Any, ...]]:
    """Columns of the rows of a table that have these ids."""
    for among, some in listed(list(ids)):
        yield from connection.execute(f"SELECT {columns} FROM {table} WHERE {key} {among}", some)  # noqa: S608


def read_document(connection: sqlite3.Connection, document_id: str, scopes: Sequence[str] | None = None) -> Document:
    """Read one document whole.

    Raises:
        StoreError: if there is none of that id in the scopes that may be read (None = all).
    """
    of_others, own = (
        selected(("conversation_id", "source_message_ids", "role"), _OTHERS, "d"),
        ", ".join(f"d.{name}" for name in _OWN),
    )
    row = connection.execute(
        f"SELECT {of_others}, {own} {_JOINED} "  # noqa: S608 (our own constants)
        "WHERE d.document_id = ?1 AND (?2 IS NULL OR d.scope IN (SELECT value FROM json_each(?2)))",
        (document_id, None if scopes is None else to_json(list(scopes))),
    ).fetchone()
    if row is None:
        raise StoreError(f"there is no document {document_id!r} that may be read")
    conversation_id, sources, role, *rest = row
    values = dict(zip(_OWN, rest, strict=True))
    for name in _INSTANTS:
        values[name] = None if values[name] is None else parse_instant(values[name])
    values["metadata"] = json.loads(values["metadata"])
    values["is_durable"] = bool(values["is_durable"])
    values["hop_targets"] = tuple(json.loads(values["hop_targets"]))
    return Document(
        conversation_id=conversation_id, source_message_ids=tuple(json.loads(sources)), role=role or "", **values
    )


def history(connection: sqlite3.Connection, document_id: str, scopes: Sequence[str] | None = None) -> list[Document]:
    """Read the documents in whose place one came to stand, itself, and those that followed it, oldest first.

    Raises:
        StoreError: if one of them is of no scope that may be read (None = all).
    """
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
    return [read_document(connection, found, scopes) for (found,) in rows.fetchall()]


def end_documents(connection: sqlite3.Connection, ends: Iterable[tuple[str, datetime]]) -> None:
    """Let documents end, each at its instant: another stands in their place from then on; they stay readable.

    Raises:
        StoreError: if one is unknown or has ended already; none is changed.
    """
    for document_id, at in ends:
        changed = connection.execute(
            "UPDATE documents SET invalidated_at = ? WHERE document_id = ? AND invalidated_at IS NULL",
            (format_instant(at), document_id),
        )
        if changed.rowcount != 1:
            raise StoreError(f"document {document_id!r} is unknown or has ended already: a document ends once")


def annotate_documents(connection: sqlite3.Connection, notes: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Put keys into the metadata of documents; their other keys stay.

    Raises:
        StoreError: if a document is unknown; none is changed.
    """
    for document_id, metadata in notes:
        known = read_document(connection, document_id).metadata
        connection.execute(
            "UPDATE documents SET metadata = ? WHERE document_id = ?",
            (mapping_json({**known, **metadata}), document_id),
        )


def update_use(connection: sqlite3.Connection, use: pl.DataFrame) -> None:
    """Write the columns access_count, last_accessed_at and decay_tier of documents."""
    rows = [
        (count, optional_instant(accessed_at), tier, document_id)
        for document_id, count, accessed_at, tier in use.select(
            "document_id", "access_count", "last_accessed_at", "decay_tier"
        ).iter_rows()
    ]
    connection.executemany(
        "UPDATE documents SET access_count = ?, last_accessed_at = ?, decay_tier = ? WHERE document_id = ?", rows
    )


_STATED = (
    "text", "overview", "content", "kind", "scope", "conversation_id", "session_id", "created_at", "valid_from",
    "supersedes",
)  # fmt: skip
"""What a document says, besides of which messages: fixed for good. Its ratings and its use may change after it is
stored."""


def _statement(document: Document) -> dict[str, Any]:
    stated = {name: getattr(document, name) for name in (*_STATED, "source_message_ids")}
    texts = {name: well_formed(stated[name]) for name in ("text", "overview", "content", "kind")}
    instants = {name: optional_instant(stated[name]) for name in ("created_at", "valid_from")}
    return {**stated, **texts, **instants}


def _encode(conversations: Mapping[str, int | None], document: Document) -> tuple[object, ...]:
    name, conversation = document.document_id, conversations[document.conversation_id]
    is_said = bool(document.conversation_id or document.session_id or document.source_message_ids)
    if is_said and conversation is None:  # else it was authored or dreamt
        raise StoreError(
            f"document {name!r} names the unknown conversation {document.conversation_id!r}; ingest it first"
        )
    if document.access_count < 0:
        raise StoreError(f"document {name!r} has access_count {document.access_count}; it counts from 0")
    for rating in ("importance", "confidence", "authority", "decay_rate"):
        if not 0 <= getattr(document, rating) <= 1:
            raise StoreError(f"document {name!r} has {rating} {getattr(document, rating)}; give a number in [0, 1]")
    require_id(document.scope, "scope")
    if is_said:
        require_id(document.session_id, "session id")
    own = zip(_ENCODED, _own(document), strict=True)
    return (
        conversation if is_said else None,
        *(one if encode is None else encode(one) for encode, one in own),
    )


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


def add_decisions(connection: sqlite3.Connection, conversation_id: str, decisions: Iterable[Decision]) -> None:
    """Keep what became of candidates of a conversation."""
    rows = [
        (
            format_instant(decision.decided_at),
            decision.action,
            well_formed(decision.reason),
            well_formed(decision.candidate.category),
            decision.candidate.scope or GLOBAL_SCOPE,
            decision.document_id,
            decision.matched_id,
            decision.score,
            mapping_json(decision.features),
            mapping_json(decision.audit),
            _candidate_json(decision.candidate),
            conversation_id,
        )
        for decision in decisions
    ]
    connection.executemany(
        """
        INSERT INTO decisions (decided_at, action, reason, category, scope, document_id, matched_id, score,
                               features, audit, candidate, conversation_id)
        SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, conversation_id FROM conversations WHERE session_key = ? AND active = 1
        """,
        rows,
    )


def decision_frame(connection: sqlite3.Connection, scopes: Sequence[str] | None = None) -> pl.DataFrame:
    """Read `DECISION_SCHEMA` in the order of deciding; of the scopes that may be read, None = all."""
    allowed, others = "TRUE", {"conversation_id": "c.session_key"}
    if scopes is not None:
        readable = f"IN ({', '.join('?' * len(scopes))})"
        allowed = " AND ".join(f"coalesce({of}.scope, d.scope) {readable}" for of in ("d", "made", "m"))
        others["audit"] = f"json_remove(d.audit, {', '.join(repr(path) for path in _NAMES_DOCUMENTS)})"
    read = connection.execute(
        f"""
        SELECT {selected(DECISION_SCHEMA, others, "d")} FROM decisions d JOIN conversations c USING (conversation_id)
        LEFT JOIN documents made ON made.document_id = d.document_id
        LEFT JOIN documents m ON m.document_id = d.matched_id
        WHERE {allowed} ORDER BY d.decision_id
        """,  # noqa: S608 (our own constants)
        tuple(scopes or ()) * 3,
    )
    return frame(read, DECISION_SCHEMA)


def _candidate_json(candidate: Candidate) -> str:
    values = {field.name: getattr(candidate, field.name) for field in fields(Candidate)}
    return to_json(
        {**values, "valid_until": optional_instant(candidate.valid_until), "metadata": dict(candidate.metadata)}
    )


def add_shards(connection: sqlite3.Connection, shards: Sequence[GuidanceShard]) -> None:
    """Keep messages as guidance; one that is kept already stays as it is.

    Raises:
        StoreError: if a message is unknown.
    """
    for shard in shards:
        known = connection.execute(
            "SELECT message_id, conversation_id FROM messages WHERE message_key = ?", (shard.message_id,)
        ).fetchone()
        if known is None:
            raise StoreError(f"a shard names the unknown message {shard.message_id!r}; ingest its conversation first")
        own = {name: getattr(shard, name) for name in _OWN_SHARD}
        own |= {"text": well_formed(shard.text), "created_at": format_instant(shard.created_at)}
        statement = insertion("guidance_shards", ("message_id", "conversation_id", *own))
        connection.execute(f"{statement} ON CONFLICT (message_id) DO NOTHING", (*known, *own.values()))


def read_undocumented_shards(connection: sqlite3.Connection) -> list[GuidanceShard]:
    """The protected messages of which there is no document, in the order of protecting."""
    rows = connection.execute(
        f"""
        SELECT m.message_key, c.session_key, {", ".join(f"g.{name}" for name in _OWN_SHARD)}
        FROM guidance_shards g JOIN messages m USING (message_id)
        JOIN conversations c ON c.conversation_id = g.conversation_id
        WHERE NOT EXISTS (SELECT 1 FROM document_messages l JOIN documents d USING (document_id)
                          WHERE l.message_id = g.message_id AND d.kind = 'guidance')
        ORDER BY g.created_at, m.conversation_id, m.seq
        """  # noqa: S608 (our own constants)
    )
    return [GuidanceShard(key, of, text, parse_instant(at), *rest) for key, of, text, at, *rest in rows]


def read_nodes(connection: sqlite3.Connection) -> list[AuthoredNode]:
    """Every authored block in authored order: by source, position, ordinal, id."""
    rows = connection.execute(
        f"SELECT {', '.join(_NODE)} FROM authored_nodes ORDER BY source, position, ordinal, node_id"  # noqa: S608
    )
    named = (dict(zip(_NODE, row, strict=True)) for row in rows)
    return [AuthoredNode(**{**row, "hop_targets": tuple(json.loads(row["hop_targets"]))}) for row in named]


def put_nodes(connection: sqlite3.Connection, nodes: Sequence[AuthoredNode]) -> None:
    """Let these be all that is authored: files are the truth, what the store holds of them is a copy."""
    connection.execute("DELETE FROM authored_nodes")
    rows = ({name: getattr(node, name) for name in _NODE} for node in nodes)
    connection.executemany(
        insertion("authored_nodes", _NODE),
        [
            tuple((row | {"text": well_formed(row["text"]), "hop_targets": to_json(row["hop_targets"])}).values())
            for row in rows
        ],
    )


def drop_documents(connection: sqlite3.Connection, kind: str) -> None:
    """Forget the documents of a kind that is a copy of files, so that they can be made again."""
    connection.execute("DELETE FROM documents WHERE kind = ? AND conversation_id IS NULL", (kind,))


def admission_scores(connection: sqlite3.Connection, message_ids: Sequence[str]) -> dict[str, float]:
    """What admission scored the candidates of messages, by message id; one without a score is left out."""
    scored = _by_ids(connection, "message_key, score", "admission_scores", "message_key", message_ids)
    best: dict[str, float] = {}
    for key, score in scored:
        best[key] = max(score, best.get(key, score))
    return best
