"""The settings around a knob that let it matter."""

from collections.abc import Mapping
from typing import Any

from eval.dataset.sample import bundled_directory
from lcm.records.conversation import ROLES
from tests.support.external_results import stand_in
from tests.support.knobs.families import (
    CLUSTERINGS,
    FOLDINGS,
    FURTHER_VECTORS,
    GATES,
    LANCEDB_PRO,
    LOSSLESS,
    NARROW,
    ORDERS,
    PATHS,
    RANKINGS,
    RECOVERIES,
    ROTATION,
    SERVER,
    SESSIONS,
    TIERS,
    TINY,
    WEIGHTED,
)

OTHERS = {"distractors.transcripts.paths": [str(bundled_directory() / "transcripts")]}
"""Where distractors may come from."""

LEAVING_OUT = {
    "source": "libravdb",  # leaves something out that can be added
    "recovery": "libravdb",
    "recovery.failure.min_top_k": 1,
    "recovery.failure.min_mean_confidence": 1.0,
}
FRAMES: Mapping[str, Mapping[str, Any]] = {
    "external/stdio": {"external.command": stand_in("honest")},
    "external/stdio:environment": {"external.command": stand_in("surroundings")},
    "external/object": {"external.target": "tests.support.external.memories.Newest"},
    "external/object:environment": {"external.target": "tests.support.external.memories.Surroundings"},
    "external/http": {"external.url": "http://127.0.0.1:9/"},
    "external/mcp:search.separator": {"external.search.results": None},
    "ranking/external": {"external": "stdio", "external.command": stand_in("honest")},
    "ranking/external:similarity": {"external.command": stand_in("edits")},
    **{
        f"admission/{name}:role_stability.{role}": {"admission.roles": list(ROLES)}
        for name in GATES
        for role in ROLES
        if role != "user"
    },
    "answerer/llm": SERVER,
    "assembly/continuity:tail.budget_tokens": {"assembly.tail.budget_fraction": None},
    **{f"compaction/{name}": {"guidance": "libravdb"} for name in CLUSTERINGS},
    **{f"compaction/{name}:min_turns": {"compaction.tail_budget_tokens": 0} for name in CLUSTERINGS},
    **{f"compaction/{name}:prior_context_tokens": {"compaction.session_token_budget": 300} for name in CLUSTERINGS},
    **{
        f"compaction/{name}:{key}": {"compaction.rules": "1.4.4"}
        for name in CLUSTERINGS
        for key in ("preservation_threshold", "embedding_share", "backend_share")
    },
    **{f"compaction/{name}:fresh_tail_max_count": {"compaction.fresh_tail_novelty": 0.0} for name in FOLDINGS},
    **{f"compaction/{name}:fresh_tail_novelty": {"compaction.fresh_tail_max_count": 200} for name in FOLDINGS},
    **{f"compaction/{name}:hot_spot_share": {"compaction.hot_spot_heat": 1} for name in FOLDINGS},
    **{f"compaction/{name}:hot_spot_heat": {"compaction.hot_spot_share": 0.2} for name in FOLDINGS},
    **{
        f"compaction/{name}:{key}": {"compaction.rules": "0.15"}
        for name in LOSSLESS
        for key in ("summary_prefix_target_tokens", "max_sweep_passes", "injected_context_tags")
    },
    "compaction/lossless_claw_0_15:condensed_min_fanout_hard": {"compaction.summary_prefix_target_tokens": 1000},
    **{
        f"compaction/lossless_claw_0_15:{key}": {
            "compaction.summary_prefix_target_tokens": 1000,
            "compaction.condensed_min_fanout_hard": 50,
            "compaction.incremental_max_depth": -1,
        }
        for key in ("leaf_min_fanout", "condensed_min_fanout", "incremental_max_depth")
    },
    "compaction/lossless_claw:condensed_min_fanout_hard": {"compaction.rules": "corrected"},
    "scheduling/asynchronous": {
        **TINY,
        "measures": "waiting",
        "replay": "per_turn",
        "scheduling.hard_threshold": 0.005,
    },
    "scheduling/asynchronous:hard_threshold": {"scheduling.budget_tokens": 700},
    "measures/answers": {"arms": "controls"},  # which rank otherwise than its sentences
    "measures/answers:answers.judge": SERVER,
    "measures/answers_llm": SERVER,
    "measures/retention:retention.budgets": TINY,
    "measures/retention:retention.rouge_threshold": {**TINY, "measures.retention.budgets": [500]},
    "measures/summary_quality:summary_quality.target_tokens": TINY,
    "measures/resume": TINY,
    "measures/survival": TINY,
    "measures/latency:latency.warmup_queries": {"measures.latency.queries": 3},
    "dataset/locomo:ledger": {"dataset.evidence": "repaired"},
    **{f"replay/{name}:distractors": OTHERS for name in ("bulk", "per_turn")},
    **{f"replay/{name}:seed": {**OTHERS, "replay.distractors": 20} for name in ("bulk", "per_turn")},
    "dataset/longmemeval:added_questions": {"dataset.protocol": "all"},
    "fusion/plain_sum:floor_from": {"fusion.floor_ratio": 2.0},
    "fusion/lancedb_pro_tuned:floor_from": {"fusion.floor_ratio": 2.0, "fusion.clamp": False},
    "fusion/lancedb_pro_tuned:floor_ratio": {"fusion.clamp": False},
    **{f"fusion/{name}:weights": {"source": "branches"} for name in WEIGHTED},
    "fusion/unified": {"ranking": "unified"},  # whose stages make its columns
    "fusion/unified_two_embedders": {"ranking": "unified", "ranking.stages.further_vectors": FURTHER_VECTORS},
    "ranking/unified:stages.further_vectors": {"fusion": "unified_two_embedders"},
    "ranking/unified": {"fusion": "unified"},
    **{
        f"ranking/unified:source.{key}": {"ranking.source.whole_documents": 0, "ranking.source.best": 1} | others
        for key, others in {
            "best": {"ranking.source.neighbours": 0},
            "speakers": {"ranking.source.neighbours": 0},
            "times": {"ranking.source.neighbours": 0, "ranking.source.speakers": 0},
            "neighbours": {},
        }.items()
    },
    **{f"fusion/{name}:clamp": {"fusion.dense_weight": 2.0} for name in ("weighted_sum", "lancedb_pro_tuned")},
    "guidance/corrected:booster_threshold": {
        "guidance.booster_embedder": {"_target_": "lcm.retrieval.embedder.hashing.Hashing"}
    },
    **{
        f"ranking/lancedb_pro:stages.{stage}.{key}": {"ranking.order": "description_no_engine"}  # which names the stage
        for stage, keys in {
            "recency_boost": ("half_life_days", "weight", "clamp_future"),
            "importance_weight": ("base_weight", "importance_weight"),
            "time_decay": (
                *("half_life_days", "floor_ratio", "dynamic_divisor", "reinforcement_factor"),
                *("max_half_life_multiplier", "access_half_life_days", "clamp_future"),
            ),
        }.items()
        for key in keys
    },
    **{
        f"ranking/{name}:stages.{stage}": {**LEAVING_OUT, "ranking.stages.limit.n": n}
        for name, stage, n in (
            *(("libravdb", stage, 100) for stage in ("hops.eta", "hops.theta_hop")),
            *((name, "recovery.user_k", 100) for name in RANKINGS),
            *((name, "recovery.session_k", 2) for name in RANKINGS),  # what the answer holds is fetched anew beside it
        )
    },
    **{
        f"recovery/{name}:{key}": value
        for name in RECOVERIES
        for key, value in {
            # where the other pattern alone makes a question one about time
            "queries.weights.when did": {"recovery.queries.weights.first or earlier": 0.0},
            "puts_pair_first": {"recovery.puts_chosen_first": False},
        }.items()
    },
    **{
        f"recovery/libravdb:temporal.{key}": {"recovery.puts_chosen_first": True}
        for key in ("least_gain", "most_chosen", "new_slot_bonus")
    },
    "ranking/lancedb_pro:order": {"decay": "weibull"},  # without one they agree
    **{
        f"ranking/{name}:stages.{stage}.spared_kinds": around
        for names, stage, around in (
            ((*RANKINGS, "lancedb_pro_beta11"), "decay", {"decay": "weibull"}),
            (LANCEDB_PRO, "length_normalization", {"ranking.stages.length_normalization.anchor": 1}),
            (LANCEDB_PRO, "time_decay", {"ranking.order": "description_no_engine"}),
        )
        for name in names
    },
    **{
        f"ranking/lancedb_pro:{path}.source.pool_size": {"ranking.least_pools": None}  # which widens what is small
        for path in ("vector", "tag")
    },
    **{
        f"ranking/lancedb_pro:least_pools.{key}": {
            "source.dense_pool_size": 1,
            "source.lexical_pool_size": 1,
            "ranking.stages.limit.n": 10,
        }
        for key in ("per_result", "most")
    },
    **{
        f"ranking/lancedb_pro:stages.related.{key}": {"ranking.stages.related.per_result": 5}
        for key in ("pool_size", "containment")
    },
    **{f"ranking/lancedb_pro:{path}.orders.{name}": {"ranking.order": name} for path in PATHS for name in ORDERS},
    "reinforcement/recall": {"decay": "weibull"},
    "scopes/default:default": {"scopes.definitions": {"custom:x": None}},
    **{f"session/{name}:skip_stateless": {"session.stateless_patterns": ["agent:*:subagent:**"]} for name in SESSIONS},
    "session/default:large_file_summarizer": {"session.large_file_threshold_tokens": 25_000},
    "session/default:import_cap_messages": {"session.import_cap_share": 0.01},
    "kinds/written": SERVER,
    "summarizer/extractive:code_share": {"summarizer.footer": False},
    "summarizer/llm": SERVER,
    "summarizer/routed": {"summarizer.abstractive": {"_target_": "lcm.compaction.summarizer.chain.Truncate"}},
    # An unknown prefix makes the model of the tests unsure: what it was trained for it says in one way.
    "summarizer/t5:beams": {"summarizer.prefix": "the garden. "},
    "summarizer/t5:length_penalty": {"summarizer.prefix": "the garden. ", "summarizer.beams": 3},
    "vector_index/hnsw": {"vector_index.exact_below": 0, "vector_index.m": 4, "vector_index.ef": 20},
    "vector_index/hnsw_tiers": NARROW,
    "vector_index/hnsw_tiers_pca": {
        **NARROW,
        "vector_index.widths": [8, None],
        "vector_index.exit_thresholds": [-0.35],
    },
    **{f"vector_index/{name}:ef_a_result": {"vector_index.exit_thresholds": [9.0, 9.0]} for name in TIERS},
    "vector_index/hnsw_tiers_pca:ef_a_result": {"vector_index.exit_thresholds": [9.0]},
    **{  # where a graph always answers, no share is asked for
        f"vector_index/{name}:largest_share": {"vector_index.exact_below": 1, "vector_index.flat_below": 1}
        for name in TIERS
    },
    "vector_index/hnsw:largest_share": {"vector_index.exact_below": 1},
    "vector_index/libravdb": {**NARROW, "vector_index.exit_thresholds": [0.86, 0.55]},
    "vector_index/hnsw_tiers:rescoring": {"vector_index.exit_by": "best_score"},
    "vector_index/hnsw_tiers_pca:rescoring": {"vector_index.exit_by": "best_score"},
    **{f"vector_index/{name}:{key}": {"vector_index.rotation": "pca"} for name in TIERS for key in ROTATION},
    **{
        f"vector_index/libravdb:{key}": {
            "vector_index.rescoring": "full_width",
            "vector_index.exit_thresholds": [-0.35, 0.0],
        }
        for key in ("candidates", "candidates_a_result", "candidates_share", "exit_by")
    },
}
"""Knob, or all knobs of a choice -> settings around it that let it matter."""
