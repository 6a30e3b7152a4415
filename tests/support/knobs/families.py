"""Choices that are one class, and configurations that several knobs are turned in."""

from collections.abc import Mapping
from typing import Any

GATES = ("gating", "libravdb")
AMACS = ("balanced", "balanced_batch", "balanced_model", "conservative", "high_recall")
POOLS = ("session", "guidance", "durable", "global", "authored", "dream")
ORDERS = ("description", "description_no_engine", "code", "code_no_engine")
PATHS = ("hybrid", "vector", "tag")
"""Of ranking=lancedb_pro."""

WEIGHTED = ("plain_sum", "reciprocal_rank", "weighted_sum", "lancedb_pro_tuned")
"""Fusions that weigh any number of branches."""

FURTHER_VECTORS = {
    "_target_": "lcm.retrieval.ranking.evidence.vector_evidence.FurtherVectorEvidence",
    "embedder": {"_target_": "lcm.retrieval.embedder.hashing.TokenSum", "dim": 64},
}
RANKINGS = ("hybrid", "lancedb_pro", "libravdb", "neighbours", "unified")
LANCEDB_PRO = ("lancedb_pro", "lancedb_pro_beta11")
LOSSLESS = ("lossless", "lossless_claw")
FOLDINGS = (*LOSSLESS, "lossless_claw_0_15")
SESSIONS = RECALLS = ("default", "lossless_claw", "lossless_claw_0_15")
CONTINUITIES = ("continuity", "libravdb")
KINDS = ("known_item", "successor", "later_mention", "tool_result", "written")
"""Of questions, those that count words."""

AUTHORED = ("files", "libravdb")
RECOVERIES = ("corrected", "libravdb", "semantic_slots")
CLUSTERINGS = ("clustering", "libravdb")
TIERS = ("hnsw_tiers", "hnsw_tiers_pca", "libravdb")
TINY = {
    "compaction": "lossless",
    "compaction.budget_tokens": 1000,
    "compaction.fresh_tail_count": 4,
    "compaction.leaf_chunk_tokens": 300,
    "compaction.min_leaf_tokens": 0,
    "compaction.leaf_target_tokens": 200,
    "summarizer": "extractive",
}
"""Compaction for a conversation of some 2,500 tokens."""

NARROW: Mapping[str, Any] = {
    "vector_index.widths": [8, 24, None],
    "vector_index.exit_thresholds": [-0.35, 0.0],
    "vector_index.tiers_from": 0,
    "vector_index.flat_below": 0,
    "vector_index.exact_below": 0,
    "vector_index.m": 4,
    "vector_index.ef": 20,
}
"""Index tiers of the few short vectors of these tests."""
ROTATION = ("rotation_from", "rotation_growth")

SERVER = {"language_model": "openai_compatible", "language_model.model.base_url": "${oc.env:LCM_TEST_SERVER}/v1"}
ANSWERS = {
    "measures/answers:answers.answering.least_covered": 1.0,
    "measures/answers:answers.answering.rank_discount": 5.0,
    "measures/answers:answers.budget_tokens": 20,
    "measures/answers:answers.judge": {
        "_target_": "eval.answering.Judge",
        "language_model": "${language_model}",
    },
    "measures/answers:answers.reads": "context",
    "measures/answers_llm:answers.budget_tokens": 20,
    "measures/answers_llm:answers.reads": "context",
}
"""What the knobs of answers are turned to."""
