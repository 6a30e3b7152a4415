"""memory-lancedb-pro's vectors onto our components."""

from dataclasses import replace
from typing import Any

from lcm.retrieval.source.indexes import branch, describe, merge
from tests.golden.components import component, documents_batch

FUSION_KEYS = {"vector_weight": "dense_weight", "bm25_weight": "lexical_weight"}


def fuse_results(case: dict[str, Any]) -> list[dict[str, Any]]:
    fusion = component("fusion=weighted_sum", "fusion")
    fusion = replace(fusion, **{FUSION_KEYS[key]: number(value) for key, value in case["config"].items()})
    dense_ids = [row["id"] for row in case["vector_results"]]
    lexical_ids = [row["id"] for row in case["bm25_results"]]
    # The existence check applies to rows found by words alone; where it fails, the row stays.
    missing = set(case["missing_ids"]) - set(case["has_id_fails"]) - set(dense_ids)
    batch = documents_batch([i for i in dict.fromkeys(dense_ids + lexical_ids) if i not in missing])
    rows = merge(
        batch,
        branch([(dense_ids, [number(r["score"]) for r in case["vector_results"]])], "cosine", "dense_rank"),
        branch([(lexical_ids, [number(r["score"]) for r in case["bm25_results"]])], "bm25", "lexical_rank"),
    )
    # These vectors begin after the score mappings.
    rows = describe(rows, batch)
    fused = fusion(rows.with_columns(dense_score="cosine", lexical_score="bm25"), batch)
    columns = {"id": "document_id", "score": "score", "vector_rank": "dense_rank", "bm25_rank": "lexical_rank"}
    return fused.select(**columns).to_dicts()


def number(value: Any) -> float:
    """JSON cannot carry NaN and the infinities: they come as their names. An absent score counts as not a number."""
    return float("nan") if value is None else float(value)
