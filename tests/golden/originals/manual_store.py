"""What becomes of a memory that is stored by hand, and of the rows of the table that it repeats or corrects.

Source: memory-lancedb-pro 1.1.0-beta.11, memory_store.
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from lcm.clock import EPOCH
from lcm.javascript import clamp01, trim
from lcm.writing.annotation import expiry, temporal_type
from lcm.writing.lifecycle import VERSIONED, appended, fact_key
from tests.golden.originals.categories import RowCategory, row_category, row_is_of_category
from tests.golden.originals.row_metadata import DEFAULT_IMPORTANCE, is_active, is_expired, parse

Row = Mapping[str, Any]
"""`id`, `text`, `category`, `timestamp_ms` and `metadata` of a row."""

NEAREST = 3
LEAST_SCORE = 0.1
LIKE_SCORE, SAME_SCORE = 0.95, 0.98


@dataclass(frozen=True, slots=True)
class Stored:
    """What to write: a new row, and changes of the metadata of others; of a duplicate nothing."""

    action: Literal["created", "superseded", "duplicate"]
    similarity: float | None = None
    """Of the near row that decided."""
    existing_id: str | None = None
    """Of the row that is there already."""
    new: Mapping[str, Any] = field(default_factory=dict)
    """category, importance and metadata."""
    patches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the id of a row that is superseded, the first one first."""


@dataclass(frozen=True, slots=True)
class _Old:
    """A row that stands, as the new memory sees it."""

    row: Row
    fields: Mapping[str, Any]
    """Its metadata, in normal form."""
    is_of_category: bool
    score: float | None = None

    @property
    def fact_key(self) -> str:
        return _folded(self.fields.get("fact_key"))


def stored(
    new_id: str,
    text: str,
    category: str,
    near: Sequence[tuple[Row, float]],
    rows: Iterable[Row],
    now_ms: float,
    *,
    importance: float | None = None,
    supersedes_by_key: bool = False,
    is_forced: bool = False,
) -> Stored:
    """Decide on a memory that a tool stores.

    A row of a score above 0.98 makes it a duplicate, unless that is forced; one above 0.95 of the same category, of
    preferences or entities, is superseded. Where a memory supersedes by key and nothing is forced, it supersedes the
    row above 0.98 and all that stand under its fact key instead, and is never a duplicate.

    Args:
        new_id: of its row.
        text: of the memory.
        category: of it, in either vocabulary.
        near: rows of its scope and their scores of a search for the text, best first; empty where that failed.
        rows: of its scope, to look for its key among; empty where that failed.
        now_ms: the present.
        importance: bound to 0..1.
        supersedes_by_key: `manualStoreSupersede`.
        is_forced: stored although it is there already.
    """
    named, by_key = row_category(category), supersedes_by_key and not is_forced
    key, overview = fact_key(named.memory_category, text), f"- {text}"
    found = [_old(row, named, now_ms, score) for row, score in near if score >= LEAST_SCORE]
    found = [old for old in found if is_active(old.fields["valid_from"], old.fields.get("invalidated_at"), now_ms)]
    same, like = _same_and_like(found[:NEAREST], named)
    if same is not None and not supersedes_by_key and not is_forced:
        return Stored("duplicate", same.score, same.row["id"])
    ended: list[_Old] = []
    if by_key:
        ended = [] if same is None else [same]
        ended += _of_key(rows, key, named, now_ms, {old.row["id"] for old in ended})
    if not ended and like is not None:
        ended, key, overview = [like], like.fields.get("fact_key"), like.fields["l1_overview"]
    metadata = _metadata(text, named, key, overview, ended, now_ms)
    if by_key:
        metadata.setdefault("relations", [])
    weight = clamp01(math.nan if importance is None else importance, DEFAULT_IMPORTANCE)
    return Stored(
        "superseded" if ended else "created",
        similarity=ended[0].score if ended else None,
        new={"category": named.storage_category, "importance": weight, "metadata": metadata},
        patches={old.row["id"]: _ending(old, new_id, key, now_ms) for old in ended},
    )


def _old(row: Row, named: RowCategory, now_ms: float, score: float | None = None) -> _Old:
    said = {name: row[name] for name in ("text", "category", "timestamp_ms")}
    fields = parse(row["metadata"], **said, now_ms=now_ms, version="beta.11")
    return _Old(row, fields, row_is_of_category(row["category"], row["metadata"], named.memory_category), score)


def _same_and_like(found: Sequence[_Old], named: RowCategory) -> tuple[_Old | None, _Old | None]:
    """The nearest where it says the same, and the first that says the like of the same category."""
    scored = [(old, old.score or 0.0) for old in found]
    same = next((old for old, score in scored[:1] if score > SAME_SCORE), None)
    if named.memory_category not in VERSIONED:
        return same, None
    like = (old for old, score in scored if LIKE_SCORE < score <= SAME_SCORE and old.is_of_category)
    return same, next(like, None)


def _of_key(rows: Iterable[Row], key: str | None, named: RowCategory, now_ms: float, but: Set[str]) -> list[_Old]:
    """Those that stand under that key and have not expired, without those that are named."""
    if key is None:
        return []
    olds = [_old(row, named, now_ms) for row in rows if row["id"] not in but]
    return [
        old
        for old in olds
        if old.fact_key == _folded(key)
        and is_active(old.fields["valid_from"], old.fields.get("invalidated_at"), now_ms)
        and not is_expired(old.fields.get("valid_until"), now_ms)
    ]


def _metadata(
    text: str, named: RowCategory, key: str | None, overview: str, ended: Sequence[_Old], now_ms: float
) -> dict[str, Any]:
    """Of the new row, in normal form."""
    until = expiry(text, EPOCH + timedelta(milliseconds=now_ms))
    tiers = [old.fields["tier"] for old in ended if old.is_of_category]
    given = {
        "l1_overview": overview,
        "memory_category": named.memory_category,
        "tier": tiers[0] if tiers else "working",
        "source": "manual",
        "valid_from": now_ms,
        "memory_temporal_type": temporal_type(text),
        "fact_key": key,
    }
    if until is not None:
        given["valid_until"] = (until - EPOCH) // timedelta(milliseconds=1)
    if ended:
        given["supersedes"] = ended[0].row["id"]
        given["relations"] = [{"type": "supersedes", "targetId": old.row["id"]} for old in ended]
    return parse(
        given, text=text, category=named.storage_category, timestamp_ms=now_ms, now_ms=now_ms, version="beta.11"
    )


def _ending(old: _Old, new_id: str, key: str | None, now_ms: float) -> dict[str, Any]:
    """What changes in the metadata of a row that another supersedes."""
    relations = appended(old.fields.get("relations"), "superseded_by", new_id)
    patch = {"invalidated_at": now_ms, "superseded_by": new_id, "relations": relations}
    is_without_key = key is not None and old.is_of_category and not old.fact_key
    return {"fact_key": key, **patch} if is_without_key else patch


def _folded(text: str | None) -> str:
    return trim(text or "").lower()
