"""What every part of memory-lancedb-pro is worth: `system=lancedb_pro` and `lancedb_pro_tuned`, and one swap at a time.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/lancedb_pro_parts.py [FOLDER] [SYSTEM ...]

Runs `lcm evaluate` once a swap and system on LoCoMo, categories 1-4, kept in FOLDER (runs/lancedb_pro_parts); what is
there already is not run again. Prints a table in Markdown for each system: its means, and for every swap the difference
to it, query by query, with its 95 % percentile bootstrap interval.
"""

import sys
from pathlib import Path

from system_parts import Swaps, tables

RECIPROCAL_RANK = (
    "fusion=reciprocal_rank", "ranking.stages.min_score=null", "ranking.stages.hard_min_score=null",
)  # fmt: skip
"""Sums of reciprocal ranks stay far below the preset's minima."""
OWN: dict[str, dict[str, dict[str, list[str]]]] = {
    "lancedb_pro": {
        "fusion": {"weights .95/.81 (tuned)": ["fusion=lancedb_pro_tuned"]},
        "reranker": {
            "reranker=cosine": ["reranker=cosine"],
            "reranker=lancedb_pro_tuned": ["reranker=lancedb_pro_tuned"],
        },
        "words": {"text_index=fts5 (tuned)": ["text_index=fts5"]},
        "candidates": {"90 nearest documents (tuned)": ["source=lancedb_pro_tuned"]},
        "documents": {"nothing expires (tuned)": ["annotation=lancedb_pro_tuned"]},
    },
    "lancedb_pro_tuned": {
        "fusion": {"weights .7/.3 (plugin)": ["fusion=weighted_sum"]},
        "reranker": {
            "reranker=none (plugin)": ["reranker=none"],
            "reranker=cosine": ["reranker=cosine"],
        },
        "words": {"text_index=lancedb (plugin)": ["text_index=lancedb"]},
        "candidates": {"20 nearest documents (plugin)": ["source=lancedb_pro"]},
        "documents": {"what is said of today expires (plugin)": ["annotation=rules"]},
    },
}
"""Swaps of one system: what the other has in the place."""
SWAPS: Swaps = {
    "paths and orders": {
        "order of the code (hard minimum before decay)": ["ranking.order=code"],
        "no decay engine: recency, importance, time decay": ["ranking.order=description_no_engine"],
        "no decay engine, order of the code": ["ranking.order=code_no_engine"],
        "vector path": ["ranking.mode=vector"],
    },
    "decay": {
        **{f"decay={choice}": [f"decay={choice}"] for choice in ("none", "weibull_slow", "weibull_fast")},
        "recency lifts the floor": ["decay.recency_lifts=true"],
        "no floor for working documents": ["decay.floor_working=0"],
        "weibull_fast, no floor for working documents": ["decay=weibull_fast", "decay.floor_working=0"],
    },
    "use": {
        "reinforcement=recall": ["reinforcement=recall"],
        "reinforcement=recall, no floor for working documents": ["reinforcement=recall", "decay.floor_working=0"],
    },
    "in place of decay": {
        f"no decay engine, without {stage}": ["ranking.order=description_no_engine", f"ranking.stages.{stage}=null"]
        for stage in ("recency_boost", "importance_weight", "time_decay")
    },
    "fusion": {
        "fusion=reciprocal_rank, no minima": [*RECIPROCAL_RANK],
        "no lexical floor": ["fusion.floor_ratio=0"],
        "weights .5/.5": ["fusion.dense_weight=0.5", "fusion.lexical_weight=0.5"],
    },
    "reranker": {},
    "words": {"text_index=bm25s": ["text_index=bm25s"]},
    "candidates": {
        "pools of 1,000 (source=hybrid)": ["source=hybrid"],
        "no query expansion": ["source.expansion=null"],
        "no substrings": ["source.containment=false"],
    },
    "documents": {
        "annotation=none": ["annotation=none"],
        "extraction=window": ["extraction=window"],
    },
    "one stage left out": {
        f"without {stage}": [f"ranking.stages.{stage}=null"]
        for stage in (
            "min_score", "not_expired", "length_normalization", "hard_min_score", "noise_filter", "diversity",
        )
    },
    "admission": {
        f"admission={choice}": [f"admission={choice}"] for choice in ("balanced", "conservative", "high_recall")
    },
    "deduplication": {
        "deduplication=rule": ["deduplication=rule"],
        "admission=balanced deduplication=rule": ["admission=balanced", "deduplication=rule"],
        "extraction=window deduplication=create": ["extraction=window", "deduplication=create"],
        "extraction=window deduplication=rule": ["extraction=window", "deduplication=rule"],
    },
}  # fmt: skip

if __name__ == "__main__":
    kept = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/lancedb_pro_parts").resolve()
    for system in sys.argv[2:] or OWN:
        swaps = {part: {**OWN[system].get(part, {}), **common} for part, common in SWAPS.items()}
        tables(system, swaps, kept / system, ["locomo"], ["dataset.categories=[1,2,3,4]"])
