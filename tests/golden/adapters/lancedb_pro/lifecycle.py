"""memory-lancedb-pro's vectors of metadata and validity onto its row metadata and `lcm.writing.lifecycle`."""

from typing import Any

from lcm.writing import lifecycle
from tests.golden.originals import row_fields as legacy
from tests.golden.originals import row_metadata as metadata


def access_metadata(case: dict[str, Any]) -> dict[str, Any]:
    count, last = metadata.access(case["metadata"])
    updated = metadata.reinforced(case["metadata"], case["access_delta"], case["now_ms"])
    return {"access_count": count, "last_accessed_at_ms": last, "updated": updated}


def smart_metadata_parse(case: dict[str, Any]) -> dict[str, Any]:
    return metadata.parse(case["metadata"], **row_of(case))


def smart_metadata_build(case: dict[str, Any]) -> dict[str, Any]:
    return metadata.build(case["metadata"], case["patch"], **row_of(case))


def metadata_caps(case: dict[str, Any]) -> dict[str, Any]:
    added = case["add"]
    appended = lifecycle.appended(case["relations"], added["type"], added["targetId"])
    counted = {name: list(range(case[f"{name}_count"])) for name in ("sources", "history")}
    return {"appended": appended, "stored": lifecycle.capped(counted | {"relations": appended})}


def fact_key(case: dict[str, Any]) -> str | None:
    return lifecycle.fact_key(case["category"], case["abstract"])


def legacy_category(case: dict[str, Any]) -> dict[str, Any]:
    category = case["category"]
    return {
        "reverse_mapped": legacy.memory_category(category, case["text"]),
        "normalized": None if category is None else legacy.normalized(category),
    }


def support_info(case: dict[str, Any]) -> dict[str, Any]:
    now = case["now_ms"]
    known = lifecycle.read_support(case["support_info"], now)
    for update in case["updates"]:
        now += update["advance_ms"]
        known = lifecycle.observe(known, update["context"], update["event"], now)
    contexts = [lifecycle.normalized_context(update["context"]) for update in case["updates"]]
    return {"normalized_contexts": contexts, **lifecycle.support_info(known)}


def validity_window(case: dict[str, Any]) -> dict[str, bool]:
    at = case["at_ms"]
    return {
        "active": metadata.is_active(case["valid_from"], case["invalidated_at"], at),
        "expired": metadata.is_expired(case["valid_until"], at),
    }


def row_of(case: dict[str, Any]) -> dict[str, Any]:
    return {"now_ms": case["now_ms"], **{key: case["entry"][key] for key in ("text", "category", "timestamp_ms")}}
