"""Decisions on candidates: audit rows that keep every candidate, whatever became of it."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import fields

import polars as pl

from lcm.clock import format_instant
from lcm.encoding import mapping_json, optional_instant, to_json, well_formed
from lcm.records.document import GLOBAL_SCOPE, Candidate, Decision
from lcm.store.frames import INSTANT, frame

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


def add_decisions(connection: sqlite3.Connection, conversation_id: str, decisions: Iterable[Decision]) -> None:
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


def decision_frame(connection: sqlite3.Connection, scopes: Sequence[str] | None) -> pl.DataFrame:
    """Read decisions as `DECISION_SCHEMA`; see `Store.decisions`."""
    allowed, audit = "TRUE", "d.audit"
    if scopes is not None:
        readable = f"IN ({', '.join('?' * len(scopes))})"
        allowed = (
            f"d.scope {readable} AND coalesce(made.scope, d.scope) {readable} AND coalesce(m.scope, d.scope) {readable}"
        )
        audit = f"json_remove(d.audit, {', '.join(repr(path) for path in _NAMES_DOCUMENTS)})"
    read = connection.execute(
        f"""
        SELECT c.session_key, d.decided_at, d.action, d.reason, d.category, d.scope, d.document_id, d.matched_id,
               d.score, d.features, {audit}, d.candidate
        FROM decisions d JOIN conversations c USING (conversation_id)
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
