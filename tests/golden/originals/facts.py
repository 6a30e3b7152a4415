"""What a plugin's table held for true at an instant.

Source: memory-lancedb-pro 1.1.0-beta.11, memory_fact_query.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lcm.clock import EPOCH, parse_instant
from lcm.javascript import clamp_int, trim
from tests.golden.originals.row_metadata import is_active, is_expired, object_of, parse

MOST_FACTS = 100

_OF_A_FACT = ("supersedes", "superseded_by", "invalidated_at", "valid_until")


@dataclass(frozen=True, slots=True)
class Fact:
    """A row that had a successor or may have one, and how it stood."""

    row: Mapping[str, Any]
    fields: Mapping[str, Any]
    """Its metadata, in normal form."""
    is_active: bool
    """It held at the instant: begun, not invalidated, not expired."""


@dataclass(frozen=True, slots=True)
class FactAnswer:
    """The facts found, those that held first, of each the newest first."""

    as_of_ms: float
    facts: list[Fact]


def facts_at(
    rows: Iterable[Mapping[str, Any]],
    now_ms: float,
    *,
    query: str | None = None,
    fact_key: str | None = None,
    at: str | None = None,
    include_history: bool = False,
    limit: float = 10,
) -> FactAnswer:
    """Look facts up by key, by words, or by both.

    Args:
        rows: that the asker may read: `text`, `category`, `timestamp_ms` and `metadata` of each.
        now_ms: the present.
        query: what stands in its key, category, abstract, overview or text, in any case.
        fact_key: its key, blanks around it and case aside; without one only rows count that have or had a validity of
            their own.
        at: ISO 8601 text; None or blank = now.
        include_history: with those that had ended by then.
        limit: at least 1, at most 100 facts.
    Raises:
        ValueError: where neither query nor key says what is asked, or `at` is no instant.
    """
    key, words = _folded(fact_key), _folded(query)
    if not key and not words:
        raise ValueError("a fact is looked for by a query, by its key, or by both: give one")
    at_ms = (parse_instant(at) - EPOCH).total_seconds() * 1000 if at and trim(at) else now_ms
    found = [_fact(row, now_ms, at_ms) for row in rows]
    wanted = [
        fact
        for fact in found
        if (key == _folded(fact.fields.get("fact_key")) if key else _is_of_a_time(fact.row))
        and any(words in text for text in _texts(fact))
        and fact.fields["valid_from"] <= at_ms
        and (include_history or fact.is_active)
    ]
    wanted.sort(key=lambda one: (not one.is_active, -one.fields["valid_from"], -(one.row["timestamp_ms"] or 0)))
    return FactAnswer(at_ms, wanted[: clamp_int(limit, 1, MOST_FACTS)])


def _fact(row: Mapping[str, Any], now_ms: float, at_ms: float) -> Fact:
    named = {name: row[name] for name in ("text", "category", "timestamp_ms")}
    fields = parse(row["metadata"], **named, now_ms=now_ms, version="beta.11")
    begins, ends = fields["valid_from"], fields.get("invalidated_at")
    return Fact(row, fields, is_active(begins, ends, at_ms) and not is_expired(fields.get("valid_until"), at_ms))


def _is_of_a_time(row: Mapping[str, Any]) -> bool:
    """Whether a row's metadata speaks of another version of it, of an end, or of a passing moment."""
    given = object_of(row["metadata"])
    return any(given.get(name) for name in _OF_A_FACT) or given.get("memory_temporal_type") == "dynamic"


def _texts(fact: Fact) -> list[str]:
    fields = fact.fields
    texts = (fields.get("fact_key"), *(fields[name] for name in ("memory_category", "l0_abstract", "l1_overview")))
    return [text.lower() for text in (*texts, fact.row["text"]) if text]


def _folded(text: str | None) -> str:
    return trim(text or "").lower()
