"""memory-lancedb-pro 1.1.0-beta.11's vectors of what a host does with rows of its table."""

from typing import Any

from lcm.clock import format_instant
from tests.golden.components import instant
from tests.golden.originals.categories import row_category
from tests.golden.originals.facts import Fact, facts_at
from tests.golden.originals.manual_store import Stored, stored
from tests.golden.originals.row_metadata import injected, is_suppressed

READABLE = ("global", "agent:main")
TOLD = ("category", "memory_category", "fact_key", "supersedes", "superseded_by")
INSTANTS = ("valid_from", "valid_until", "invalidated_at")


def tier1_recall(case: dict[str, Any]) -> dict[str, Any]:
    options = dict(case["options"])
    durations = {"suppression_duration_ms": "suppression_ms", "bad_recall_decay_ms": "forgets_after_ms"}
    given = {ours: options[theirs] for theirs, ours in durations.items() if theirs in options}
    patch = injected(case["meta"], case["now_ms"], suppresses=options.get("min_repeated", 0) > 0, **given)
    return {"suppressed": is_suppressed(case["meta"], case["now_ms"]), "patch": patch}


def fact_query(case: dict[str, Any]) -> dict[str, Any]:
    if not any((case[name] or "").strip() for name in ("query", "fact_key")):
        return {"error": "missing_selector"}
    asked = {name: case[name] for name in ("query", "fact_key", "at")}
    limit = 10 if case["limit"] is None else case["limit"]
    rows = [row for row in case["rows"] if row["scope"] in READABLE]
    try:
        found = facts_at(rows, case["now_ms"], **asked, include_history=bool(case["include_history"]), limit=limit)
    except ValueError:
        return {"error": "fact_query_failed"}
    told = [told_of(fact) for fact in found.facts]
    return {"as_of": format_instant(instant(found.as_of_ms)), "count": len(told), "facts": told}


def told_of(fact: Fact) -> dict[str, Any]:
    row, fields = fact.row, {**fact.fields, "category": fact.row["category"]}
    return {
        **{name: row[name] for name in ("id", "scope")},
        **{name: fields[name] for name in TOLD if name in fields},
        "active_at": fact.is_active,
        **{name: format_instant(instant(fields[name])) for name in INSTANTS if name in fields},
    }


LIFECYCLE = (
    "l1_overview", "memory_category", "tier", "source", "state", "memory_layer", "valid_from", "valid_until",
    "memory_temporal_type", "fact_key", "supersedes", "relations",
)  # fmt: skip
"""The metadata of a new row that the vectors show."""


def manual_supersede(case: dict[str, Any]) -> dict[str, Any]:
    scope = case["scope"] or "global"
    rows = [row for row in case["rows"] if row["scope"] == scope]
    near = sorted(((row, row["score"]) for row in rows if row["score"] is not None), key=lambda one: -one[1])
    found = stored(
        "new1",
        case["text"],
        case["category"],
        [] if case["search_fails"] else near,
        [] if case["lookup_fails"] else rows,
        case["now_ms"],
        importance=case["importance"],
        supersedes_by_key=case["manual_store_supersede"],
        is_forced=bool(case["force"]),
    )
    return {**_told(found, case["category"]), "operations": _operations(found, scope)}


def _told(found: Stored, category: str) -> dict[str, Any]:
    similarity = {} if found.similarity is None else {"similarity": found.similarity}
    if found.action == "duplicate":
        return {"action": "duplicate", "existing_id": found.existing_id, **similarity}
    named = row_category(category)
    ended = {"superseded_ids": list(found.patches)} if found.patches else {}
    names = {"category": named.memory_category, "raw_category": named.storage_category}
    return {"action": found.action, **ended, **similarity, **names}


def _operations(found: Stored, scope: str) -> list[dict[str, Any]]:
    if found.action == "duplicate":
        return []
    metadata = found.new["metadata"]
    shown = {name: metadata[name] for name in LIFECYCLE if name in metadata}
    new = {"op": "store", "id": "new1", "scope": scope, **found.new, "metadata": shown}
    return [new, *({"op": "patch", "id": row_id, "patch": patch} for row_id, patch in found.patches.items())]
