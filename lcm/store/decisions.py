"""Decisions on candidates: audit rows that keep every candidate, whatever became of it."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import fields

import polars as pl

from lcm.encoding import mapping_json, optional_instant, to_json, well_formed
from lcm.instants import format_instant
from lcm.records import Candidate, Decision
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


def add_decisions(connection: sqlite3.Connection, conversation_id: str, decisions: Iterable[Decision]) -> None:
    rows = [
        (
            format_instant(decision.decided_at),
            decision.action,
            well_formed(decision.reason),
            well_formed(decision.candidate.category),
            decision.candidate.scope,
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
    allowed = "TRUE" if scopes is None else f"d.scope IN ({', '.join('?' * len(scopes))})"
    read = connection.execute(
        f"""
        SELECT c.session_key, d.decided_at, d.action, d.reason, d.category, d.scope, d.document_id, d.matched_id,
               d.score, d.features, d.audit, d.candidate
        FROM decisions d JOIN conversations c USING (conversation_id) WHERE {allowed} ORDER BY d.decision_id
        """,  # noqa: S608 (our own constants)
        tuple(scopes or ()),
    )
    return frame(read, DECISION_SCHEMA)


def _candidate_json(candidate: Candidate) -> str:
    values = {field.name: getattr(candidate, field.name) for field in fields(Candidate)}
    return to_json(
        {**values, "valid_until": optional_instant(candidate.valid_until), "metadata": dict(candidate.metadata)}
    )
