"""memory-lancedb-pro 1.1.0-beta.11's vectors of what a host does with rows of its table."""

from typing import Any

from lcm.clock import format_instant
from lcm.plugins.lancedb_pro.facts import Fact, facts_at
from lcm.plugins.lancedb_pro.row_metadata import injected, is_suppressed
from tests.golden.components import instant

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
