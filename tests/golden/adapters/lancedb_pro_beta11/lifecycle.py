"""memory-lancedb-pro 1.1.0-beta.11's vectors of metadata onto its row metadata."""

from typing import Any

from lcm.records.document import category_named
from tests.golden.adapters.lancedb_pro.lifecycle import row_of
from tests.golden.originals import row_fields, row_metadata


def smart_metadata_parse(case: dict[str, Any]) -> dict[str, Any]:
    return row_metadata.parse(case["metadata"], **row_of(case), version="beta.11")


def legacy_category(case: dict[str, Any]) -> dict[str, Any]:
    category = case["category"]
    return {
        "reverse_mapped": row_fields.memory_category(category, case["text"], "beta.11", case.get("row_type")),
        "normalized": category_named(category),
    }
