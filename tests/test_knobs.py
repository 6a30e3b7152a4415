"""A knob that changes no number is a defect, unless the reason stands here.

Every leaf of every YAML is changed, one at a time, and what its component gives must change. Identities (an
embedder's name, a dataset's digest) hold all settings by construction and are no proof, so they are left out.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from omegaconf import OmegaConf
from onnx import numpy_helper

from eval.dataset.sample import bundled_directory
from lcm.records import ROLES
from lcm.retrieval.embedder.export import find_export
from lcm.retrieval.embedder.minilm import WEIGHTS_SHA256
from pipelines.config import conf_folder
from tests.conftest import ROOT
from tests.eval.dataset.test_beam import write_small_beam
from tests.eval.dataset.test_dialogsum import write_small_dialogsum
from tests.eval.dataset.test_longmemeval import write_small_longmemeval
from tests.eval.dataset.test_personamem import write_small_personamem
from tests.eval.dataset.test_qmsum import write_small_qmsum
from tests.lcm.compaction.summarizer.conftest import built_t5, tiny_t5  # noqa: F401 - fixtures
from tests.lcm.retrieval.embedder.conftest import build_model, exported_by_two, minilm_cache  # noqa: F401 - fixtures
from tests.lcm.retrieval.reranker.test_cross_encoder import build_cross_encoder
from tests.support.component_results import result
from tests.support.ray_of_two import RAY_OF_TWO, ray_of_two  # noqa: F401 - fixture
from tests.support.small_locomo import write_small_locomo

SMALL_DATASETS: Mapping[str, Callable[[Path, pytest.MonkeyPatch], str]] = {
    "beam": write_small_beam,
    "dialogsum": write_small_dialogsum,
    "locomo": write_small_locomo,
    "longmemeval": write_small_longmemeval,
    "personamem": write_small_personamem,
    "qmsum": write_small_qmsum,
}


def _copy(name: str, here: Path) -> str:
    return str(shutil.copytree(here / name, here / "copy"))


def _profiles(path: Path, old: str, **others: str) -> str:
    path.write_text(json.dumps({name: {"api_key": key} for name, key in {"old": old, **others}.items()}))
    return str(path)


GATES = ("gating", "libravdb")
POOLS = ("session", "guidance", "durable", "global", "authored", "dream")

REASONS = {
    **{f"admission/{name}:token_estimator.empty_tokens": "in an empty text nothing is counted" for name in GATES},
    "arms/controls:last_n.order": "this arm has no stage",
    "arms/controls:random.order": "this arm has no stage",
    "arms/controls:whole_history.order": "this arm has no stage",
    "config:cache": "rows from the cache are those of the embedder, bit for bit",
    **{
        f"config:stages.{key}": "where and how much is kept changes no number"
        for key in ("directory", "max_gib", "memory_gib")
    },
    "config:latency.warmup_queries": "asked first and not counted",
    **{
        f"dataset/{name}:directory": "where the files lie; their digests are pinned"
        for name in (*SMALL_DATASETS, "sample")
    },
    "dataset/transcripts:format": "the format that is detected and the same one named read the same",
    "dataset/transcripts:strict": "what refuses a damaged file changes nothing in a whole one",
    **{
        f"decay/{name}:stale_threshold": "nothing asks yet which documents are stale"
        for name in ("weibull", "weibull_fast", "weibull_slow")
    },
    "embedder/minilm:directory": "where the weights lie",
    "embedder/minilm:threads": "a row depends on nothing but its text",
    "embedder/nomic:threads": "a row depends on nothing but its text",
    "embedder/onnx:threads": "a row depends on nothing but its text",
    **{f"executor/{name}:workers": "results do not depend on how many work at once" for name in ("local", "ray")},
    "executor/ray:address": "nor on which machines",
    "executor/ray:num_cpus": "nor on how many processors each has",
    "executor/ray:runtime_env": "what workers find besides: nothing here asks for it",
    "language_model/openai_compatible:model.api_key_file": "tried where every key before it was refused",
    "language_model/openai_compatible:model.timeout_seconds": "how long a server may take, not what it replies",
    **{
        f"reranker/cross_encoder:blend.{name}": "a cross-encoder returns every document"
        for name in ("unreturned_weight", "strong_floor_unreturned", "fair_floor_unreturned", "weak_floor_unreturned")
    },
    "recovery/semantic_slots:puts_pair_first": "it seeks no pair",
    "reranker/cross_encoder:threads": "a score depends on nothing but its pair",
    "reranker/remote:timeout_ms": "how long a service may take, not what it replies",
    "reranker/remote:workers": "a query's reply does not depend on those asked beside it",
    "summarizer/llm:workers": "a summary does not depend on those asked for beside it",
    "summarizer/t5:batch_size": "a summary depends on nothing but its request",
    "summarizer/t5:threads": "a summary depends on nothing but its request",
    "tracking/mlflow:timeout_s": "how long a server may take, not what it is told",
}
"""Knob -> why it changes no number."""

TEMPORAL_PATTERNS = (
    *("how many days", "how long", "before or after", "since or between", "first or earlier", "when did"),
)
LIMITED = {"limit": {"_target_": "lcm.retrieval.ranking.stages.limit.Limit", "n": 3}}
LANCEDB_PRO = ("lancedb_pro", "lancedb_pro_no_engine", "lancedb_pro_code", "lancedb_pro_code_no_engine")

LOSSLESS = ("lossless", "lossless_claw")
SESSIONS = RECALLS = ("default", "lossless_claw")
CONTINUITIES = ("continuity", "libravdb", "libravdb_1_4_4")
AUTHORED = ("files", "libravdb")
RECOVERIES = ("corrected", "libravdb", "semantic_slots")
LEXICAL_RECOVERIES = ("corrected", "libravdb")
CLUSTERINGS = ("clustering", "libravdb", "libravdb_1_4_4")
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

CHANGED: Mapping[str, Any] = {
    "config:stages.directory": lambda here: str(here / "stages"),
    **{
        f"admission/{name}:admit_threshold": 0.95  # never below the other
        for name in ("balanced", "balanced_model", "conservative", "high_recall")
    },
    "admission/balanced:reject_threshold": 0.55,  # no candidate scores much less than the default
    "admission/high_recall:reject_threshold": 0.5,  # likewise
    **{
        f"admission/{name}:{key}": value
        for name in GATES
        for key, value in {
            "promotion": "always",
            "roles": ["assistant"],
            "turn_hits": 2,
            "threshold": 0.6,
            "token_estimator.rounding": "up",
            "role_stability.assistant": 0.9,
            "role_stability.system": 0.9,
            "role_stability.tool": 0.9,
        }.items()
    },
    "admission/gating:patterns": "original",
    "admission/libravdb:patterns": "corrected",
    "annotation/rules:fallback": "patterns",
    "arms/controls:bm25.order": [],
    "arms/controls:bm25.stages.score.column": "cosine",
    "arms/controls:dense.order": [],
    "arms/controls:dense.stages.score.column": "bm25",
    "arms/controls:last_n.order": [],
    "arms/controls:last_n.stages": LIMITED,
    "arms/controls:random.order": [],
    "arms/controls:random.stages": LIMITED,
    "arms/controls:whole_history.order": [],
    "arms/controls:whole_history.stages": LIMITED,
    "arms/controls:whole_history.source.pool_size": 7,
    **{
        f"authored/{name}:{key}": value
        for name in AUTHORED
        for key, value in {
            "paths": [str(ROOT / "README.md")],
            "adapter": "obsidian",
            "include": ["a*"],
            "exclude": ["notes/w*"],
            "max_file_bytes": 50,
            "max_hard_tokens": 3,
        }.items()
    },
    "authored/files:joins": "glued",
    "authored/files:line_ends": "unix",
    "authored/libravdb:joins": "spaced",
    "authored/libravdb:line_ends": "any",
    **{f"assembly/{name}:timezone": "Asia/Tokyo" for name in LOSSLESS},
    **{f"assembly/{name}:max_budget_tokens": 1000 for name in LOSSLESS},
    **{f"assembly/{name}:shares.hard_fraction": 0.1 for name in CONTINUITIES},  # 0 is all of it, and so is 1
    "assembly/continuity:shares.oversized_hard": "degrade",
    "assembly/continuity:shares.soft_claim": "used",
    "assembly/continuity:tail.bundles": "none",
    "assembly/continuity:rendering": "twice",
    **{
        f"assembly/{name}:{key}": value
        for name in ("libravdb", "libravdb_1_4_4")
        for key, value in {
            "shares.oversized_hard": "refuse",
            "shares.soft_claim": "reserved",
            "tail.budget_fraction": 0.9,
            "tail.bundles": "none",
            "rendering": "once",
        }.items()
    },
    "assembly/lossless:eviction": "relevance",
    "assembly/lossless:relevance_terms": "ascii_json",
    "assembly/lossless:tool_pairing": "lenient",
    "assembly/lossless:protection": "results",
    "assembly/lossless_claw:eviction": "chronological",
    "assembly/lossless_claw:fresh_tail_max_tokens": 4000,
    "assembly/lossless_claw:relevance_terms": "words",
    "assembly/lossless_claw:tool_pairing": "strict",
    "assembly/lossless_claw:protection": "pairs",
    **{
        f"compaction/{name}:{key}": value
        for name in LOSSLESS
        for key, value in {
            "condensed_min_fanout_hard": 3,
            "incremental_max_depth": 0,
            "timezone": "Asia/Tokyo",
            "sweep_deadline_seconds": 60.0,
            "until_under_deadline_seconds": 150.0,
        }.items()
    },
    **{
        f"compaction/{name}:{key}": value
        for name in CLUSTERINGS
        for key, value in {
            "bundles": "none",
            "min_turns": 9,
            "tail_budget_tokens": 1000,
            "confidence": "embedding",
            "counting": "context",
            "prior": "standing_before",
            "technicality_of": "all_turns",
        }.items()
    },
    "compaction/clustering:counting": "original",
    "compaction/clustering:prior": "made_before",
    "compaction/libravdb_1_4_4:confidence": "backend",
    "compaction/libravdb_1_4_4:technicality_of": "scored_turns",
    "compaction/lossless:source_text": "content",
    "compaction/lossless:condensation_scan": "first_run",
    "compaction/lossless:hard_fanout": "never",
    "compaction/lossless:condensed_previous": "none",
    "compaction/lossless:growth": "allowed",
    "compaction/lossless_claw:min_leaf_tokens": 2000,
    "compaction/lossless_claw:source_text": "labelled",
    "compaction/lossless_claw:condensation_scan": "every_run",
    "compaction/lossless_claw:hard_fanout": "overflow",
    "compaction/lossless_claw:condensed_previous": "preceding",
    "compaction/lossless_claw:growth": "never",
    "config:latency.queries": 3,
    "executor/ray:address": "local",
    "executor/ray:num_cpus": 2,
    "executor/ray:runtime_env": {"env_vars": {"WEATHER": "fair"}},
    **{f"dataset/{name}:directory": partial(_copy, name) for name in SMALL_DATASETS},
    "config:retention.rouge_threshold": 1.0,
    "dataset/beam:size": "500K",
    "dataset/locomo:evidence": "repaired",
    "dataset/longmemeval:protocol": "all",
    "dataset/qmsum:marks": "keep",
    "dataset/sample:directory": lambda here: str(bundled_directory()),
    "dataset/transcripts:format": "chat",
    "dataset/transcripts:paths": [str(bundled_directory() / "transcripts" / "ryokou.json")],
    "deduplication/model:min_score": 0.9,
    "deduplication/rule:min_score": 0.9,  # what is farther away is of no topic
    "deduplication/model:profile_min_score": 0.7,  # no score is below 1/3
    "embedder/minilm:directory": lambda here: str(find_export(WEIGHTS_SHA256, "int8")),
    "embedder/minilm:precision": "fp32",
    "embedder/minilm:threads": 1,
    "embedder/nomic:directory": lambda here: str(here / "another"),
    "embedder/nomic:file": "another.onnx",
    "embedder/nomic:pooling": "cls",
    "embedder/nomic:threads": 1,
    "embedder/nomic:truncate_dim": 8,
    "embedder/onnx:directory": lambda here: str(here / "another"),
    "embedder/onnx:file": "another.onnx",
    "embedder/onnx:pooling": "cls",
    "embedder/onnx:threads": 1,
    "embedder/onnx:truncate_dim": 8,
    "extraction/llm:max_chars": 300,
    "extraction/llm:min_messages": 20,
    "fusion/plain_sum:floor_ratio": 2.0,  # below 1 a floor is never above the sum
    "language_model/openai_compatible:directory": lambda here: str(here / "kept"),
    "language_model/openai_compatible:mode": "live",
    "language_model/openai_compatible:model.api_key_env": "ANOTHER_KEY",
    "language_model/openai_compatible:model.api_key_file": lambda here: str(here / "key"),
    "language_model/openai_compatible:model.base_url": "${oc.env:LCM_TEST_SERVER}/v2",
    "language_model/openai_compatible:model.model": "another",
    "language_model/openai_compatible:model.profile": "new",
    "language_model/openai_compatible:model.profiles": lambda here: _profiles(here / "others.json", "sk-refused-3"),
    "fusion/weighted_sum:floor_from": 0.85,
    "fusion/two_pass:terms": "ascii",
    "fusion/two_pass:guidance": "together",
    "fusion/two_pass_libravdb:terms": "unicode",
    "fusion/two_pass_libravdb:guidance": "apart",
    **{
        f"guidance/{name}:{key}": 0.9  # half of it protects nothing either
        for name in ("corrected", "libravdb")
        for key in ("assistant_stability", "other_stability")
    },
    "guidance/corrected:booster_embedder": {"_target_": "lcm.retrieval.embedder.hashing.Hashing"},
    "ranking/lancedb_pro:mode": "vector",
    "ranking/lancedb_pro:stages.dense_only.column": "cosine",
    "ranking/lancedb_pro:stages.lexical_only.column": "bm25",
    "ranking/lancedb_pro:stages.hard_min_score.threshold": 0.5,  # few documents score less than the default
    "ranking/lancedb_pro:stages.min_score.threshold": 0.5,
    "ranking/lancedb_pro:tag.source.pool_size": 1,  # few documents carry a tag
    **{f"ranking/{name}:hybrid.order": ["dense_score", "lexical_score", "fusion"] for name in LANCEDB_PRO},
    **{f"ranking/{name}:vector.order": ["dense_score", "dense_only"] for name in LANCEDB_PRO},
    **{f"ranking/{name}:tag.order": ["lexical_score", "lexical_only"] for name in LANCEDB_PRO},
    "ranking/hybrid:order": ["dense_score", "lexical_score", "fusion"],
    "ranking/libravdb:stages.hops.theta_hop": 0.4,
    "ranking/libravdb:order": ["dense_score", "lexical_score", "fusion"],
    "ranking/neighbours:order": ["scores", "fusion"],
    "ranking/unified:order": ["scores", "words", "vectors", "likeness", "speakers", "times", "form", "fusion"],
    **{f"recall/{name}:max_regex_rows": 10 for name in RECALLS},
    **{f"recall/{name}:regex_timeout_seconds": 1e-9 for name in RECALLS},  # no row is looked at in time
    "recall/default:order": "time",
    "recall/default:summary_times": "made",
    "recall/default:subtree": "derived",
    "recall/default:distilled": "ids",
    "recall/default:message_fallback": "shallow",
    "recall/lossless_claw:order": "relevance",
    "recall/lossless_claw:summary_times": "covered",
    "recall/lossless_claw:subtree": "sources",
    "recall/lossless_claw:distilled": "words",
    "recall/lossless_claw:message_fallback": "always",
    **{
        f"recovery/{name}:{key}": value
        for name in RECOVERIES
        for key, value in {
            "compared_by.words": "ascii",
            "queries.events.short_terms": 6,  # up to edge_terms the terms are one slot anyway
            "queries.events.extra_stop_words": [],
            **{f"queries.weights.{pattern}": 0.1 for pattern in TEMPORAL_PATTERNS},
            "queries.full_weight": 10.0,
            "temporal.least_gain": 0.9,
            "queries.threshold": 0.9,
            "reserve.comparison_factor": 1.0,
        }.items()
    },
    "recovery/libravdb:compared_by.words": "unicode",
    "recovery/libravdb:queries.events.extra_stop_words": ["came"],
    "reinforcement/recall:maintained": 10,
    **{f"reranker/{name}:window": 2 for name in ("cosine", "cross_encoder", "remote")},
    "reranker/cross_encoder:activation": "none",
    "reranker/cross_encoder:directory": lambda here: str(here / "another"),
    "reranker/cross_encoder:file": "another.onnx",
    "reranker/cross_encoder:max_tokens": 16,
    "reranker/cross_encoder:threads": 1,
    # Both leave 0.8 to a weak document that is not returned, so less of one of them alone shows in nothing.
    "reranker/remote:blend.unreturned_weight": 0.9,
    "reranker/remote:blend.weak_floor_unreturned": 0.9,
    "reranker/remote:api_key_env": "ANOTHER_KEY",
    "reranker/remote:endpoint": "${oc.env:LCM_TEST_SERVER}/v2",
    "reranker/remote:fallback.window": 1,
    "reranker/remote:model": "another",
    "reranker/remote:provider": "tei",
    "scopes/default:agent_access": {"ann": ["custom:x"]},
    "scopes/default:default": "custom:x",
    "scopes/default:definitions": {"custom:x": None},
    "scopes/default:shared": ["custom:x"],
    **{f"session/{name}:ignore_patterns": ["agent:*:cron:**"] for name in SESSIONS},
    **{f"session/{name}:stateless_patterns": ["agent:*:subagent:**"] for name in SESSIONS},
    **{
        f"session/{name}:large_file_summarizer": {"_target_": "lcm.compaction.summarizer.truncate.Truncate"}
        for name in SESSIONS
    },
    "session/default:bootstrap_max_tokens": 6000,
    "session/default:large_file_threshold_tokens": 25_000,
    "session/default:reconciliation": "content",
    "session/default:branches": "in_file_order",
    "session/default:import_cap_share": 0.01,
    "session/lossless_claw:reconciliation": "entry_ids",
    "session/lossless_claw:branches": "apart",
    **{f"source/by_scope:{pool}_pool_size": 3 for pool in POOLS},
    "source/dense:pool_size": 7,
    "source/hybrid:dense_pool_size": 7,
    "source/hybrid:lexical_pool_size": 7,
    "source/lexical:pool_size": 7,
    "source/recent:pool_size": 7,
    "source/shuffled:pool_size": 7,
    "summarizer/chain:order": ["truncate"],
    "summarizer/extractive:code_share": 1.0,
    "summarizer/extractive:speaker": 0.0,
    "summarizer/llm:custom_instructions": "Name every ship.",
    "summarizer/t5:model": lambda here: str(here / "untrained"),
    "summarizer/t5:precision": "int8",
    "summarizer/t5:beams": 3,
    "summarizer/t5:max_new_tokens": 4,
    "summarizer/t5:max_input_tokens": 32,
    "summarizer/t5:prefix": "the garden. ",
    "summarizer/t5:threads": 1,
    "summarizer/truncate:marker": "[cut]",
    "text_index/bm25s:stemmer": "none",
    "text_index/bm25s:stop_words": "none",
    "text_index/fts5:stop_words": "none",
    "summary_expansion/bounded:policy.confidence_threshold": 0.95,
    "summary_expansion/bounded:policy.token_budget": 15,
    "summary_documents/replacing:covered": "searchable",
    "summary_documents/searchable:covered": "hidden",
    "token_estimator/code_points:rounding": "up",
    "token_estimator/code_points_up:rounding": "down",
    "token_estimator/script_chars:alphabet_units": 3.0,
    "token_estimator/script_chars:other_units": 5.0,
    "tracking/mlflow:uri": lambda here: f"sqlite:///{here}/another.db",
    "vector_index/hnsw:exact_below": 100,
    **{f"vector_index/{name}:seed": 2 for name in ("hnsw", *TIERS)},  # the generator of hnswlib takes 0 for 1
    **{
        f"vector_index/{name}:{key}": value
        for name in TIERS
        for key, value in {
            "widths": [8, 24, None],
            "exit_thresholds": [0.5, 0.5],
            "exit_by": "best_score",
            "rescoring": "none",
            "candidates": 150,  # 50 for 10 results in any case
            "rotation": "pca",
            "rotation_from": 1000,  # more than there are
            "rotation_growth": 5.0,
            "flat_below": 100,
            "exact_below": 100,
        }.items()
    },
    "vector_index/hnsw_tiers_pca:widths": [8, None],
    "vector_index/hnsw_tiers_pca:exit_thresholds": [-0.35],
    "vector_index/hnsw_tiers_pca:rotation": "none",
    "vector_index/libravdb:exit_by": "margin",
    "vector_index/libravdb:exit_thresholds": [0.86, 0.86],
    "vector_index/libravdb:rescoring": "full_width",
    "vector_index/libravdb:tiers_from": 10_000,
}
"""Knob -> another value, or how to make one, where `another` has none or none that can matter here."""

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

FRAMES: Mapping[str, Mapping[str, Any]] = {
    **{
        f"admission/{name}:role_stability.{role}": {"admission.roles": list(ROLES)}
        for name in GATES
        for role in ROLES
        if role != "user"
    },
    "answerer/llm": SERVER,
    "assembly/continuity:tail.budget_tokens": {"assembly.tail.budget_fraction": None},
    "assembly/lossless:relevance_terms": {"assembly.eviction": "relevance"},
    **{f"compaction/{name}": {"guidance": "libravdb"} for name in CLUSTERINGS},
    **{f"compaction/{name}:min_turns": {"compaction.tail_budget_tokens": 0} for name in CLUSTERINGS},
    **{f"compaction/{name}:prior_context_tokens": {"compaction.session_token_budget": 300} for name in CLUSTERINGS},
    **{
        f"compaction/libravdb_1_4_4:{key}": {"compaction.preservation_threshold": 0.0}  # the words are the model's own
        for key in (*("counting", "tighter_target_tokens", "tighter_density", "last_target_tokens", "last_density"),)
    },
    **{
        f"compaction/{name}:{key}": {"compaction.confidence": "embedding"}
        for name in ("clustering", "libravdb")
        for key in ("preservation_threshold", "embedding_share", "backend_share")
    },
    "compaction/lossless_claw:condensed_min_fanout_hard": {"compaction.hard_fanout": "overflow"},
    "config:retention.budgets": TINY,
    "config:retention.rouge_threshold": {**TINY, "retention.budgets": [500]},
    "config:summary_quality.target_tokens": TINY,
    "config:cache": {"latency.queries": 0},
    "config:latency.warmup_queries": {"latency.queries": 3},
    "dataset/longmemeval:added_questions": {"dataset.protocol": "all"},
    "fusion/plain_sum:floor_from": {"fusion.floor_ratio": 2.0},
    "fusion/unified": {"ranking": "unified"},  # whose stages make its columns
    "ranking/unified": {"fusion": "unified"},
    "fusion/weighted_sum:clamp": {"fusion.dense_weight": 2.0},
    "guidance/corrected:booster_threshold": {
        "guidance.booster_embedder": {"_target_": "lcm.retrieval.embedder.hashing.Hashing"}
    },
    **{
        f"ranking/lancedb_pro:stages.{stage}.{key}": {"ranking": "lancedb_pro_no_engine"}  # whose orders name the stage
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
        f"ranking/libravdb:stages.{stage}": {
            "source": "libravdb",  # leaves something out that can be added
            "recovery": "libravdb",
            "recovery.failure.min_top_k": 1,
            "recovery.failure.min_mean_confidence": 1.0,
            "ranking.stages.limit.n": 100,
        }
        for stage in ("hops.eta", "hops.theta_hop", "recovery.user_k")
    },
    "ranking/libravdb:stages.recovery.session_k": {
        "source": "libravdb",
        "recovery": "libravdb",
        "recovery.failure.min_top_k": 1,
        "recovery.failure.min_mean_confidence": 1.0,
        "ranking.stages.limit.n": 2,  # what the answer holds is fetched anew beside it
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
    "reinforcement/recall": {"decay": "weibull"},
    "scopes/default:default": {"scopes.definitions": {"custom:x": None}},
    **{f"session/{name}:skip_stateless": {"session.stateless_patterns": ["agent:*:subagent:**"]} for name in SESSIONS},
    **{
        f"session/default:{key}": {"session.large_file_threshold_tokens": 25_000}
        for key in ("every_tool_result", "large_file_summarizer")
    },
    "session/default:import_cap_messages": {"session.import_cap_share": 0.01},
    "summarizer/llm": SERVER,
    "summarizer/routed": {"summarizer.abstractive": {"_target_": "lcm.compaction.summarizer.truncate.Truncate"}},
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
    "vector_index/libravdb": {**NARROW, "vector_index.exit_thresholds": [0.86, 0.55]},
    "vector_index/hnsw_tiers:rescoring": {"vector_index.exit_by": "best_score"},
    "vector_index/hnsw_tiers_pca:rescoring": {"vector_index.exit_by": "best_score"},
    **{f"vector_index/{name}:{key}": {"vector_index.rotation": "pca"} for name in TIERS for key in ROTATION},
    **{
        f"vector_index/libravdb:{key}": {
            "vector_index.rescoring": "full_width",
            "vector_index.exit_thresholds": [-0.35, 0.0],
        }
        for key in ("candidates", "exit_by")
    },
}
"""Knob, or all knobs of a choice -> settings around it that let it matter."""

SMALL: Mapping[str, Any] = {
    "language_model": "none",
    "annotation": "none",
    "extraction": "verbatim",
    "admission": "none",
    "deduplication": "none",
    "embedder": "hashing",
    "source": "hybrid",
    "fusion": "weighted_sum",
    "reranker": "none",
    "decay": "none",
    "recovery": "none",
    "ranking": "hybrid",
    "reinforcement": "none",
    "session": "default",
    "summarizer": "truncate",
    "guidance": "none",
    "summary_expansion": "none",
    "compaction": "none",
    "summary_documents": "none",
    "authored": "none",
    "assembly": "lossless",
    "arms": "none",
    "executor": "none",
    "tracking": "none",
    "retention.budgets": [],
    "summary_quality.target_tokens": 0,
    "latency.queries": 0,
    "cache": False,
}
"""What stands around every knob, so that nothing slow runs and no default is relied on."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One leaf of one YAML."""

    place: str
    """`group/choice`, or `config` for the root's own keys."""
    path: str
    value: Any

    def __str__(self) -> str:
        return f"{self.place}:{self.path}"

    @property
    def group(self) -> str:
        return self.place.partition("/")[0]

    @property
    def key(self) -> str:
        """What to write on the command line."""
        return self.path if self.place == "config" else f"{self.group}.{self.path}"

    def frame(self) -> dict[str, Any]:
        """The overrides that stand around this knob, which is itself not among them."""
        choice = {} if self.place == "config" else {self.group: self.place.partition("/")[2]}
        framed = {**SMALL, **choice} | FRAMES.get(self.place, {}) | FRAMES.get(str(self), {})
        return {key: value for key, value in framed.items() if key != self.key}

    def another(self, here: Path) -> Any:
        """Another value than the YAML's."""
        if str(self) in CHANGED:
            value = CHANGED[str(self)]
            return value(here) if callable(value) else value
        match self.value:
            case bool():
                return not self.value
            case int() | float():
                return type(self.value)(self.value / 2) or self.value + 1
            case list() if len(self.value) > 1:
                return self.value[:-1]
            case None if self.path.endswith("expansion"):
                return {"_target_": "lcm.retrieval.source.query_expansion.QueryExpansion"}
            case str() if "_prefix" in self.path or self.path == "experiment":
                return f"another {self.value}"
        raise AssertionError(f"CHANGED must name another value for {self}, now {self.value!r}")


def knobs() -> Iterator[Knob]:
    """Every leaf of every YAML, but for presets and searches, which set what others define."""
    for path in sorted(conf_folder.conf_dir().glob("*/*.yaml")):
        if path.parent.name not in ("system", "experiment", "sweep", "space"):
            own = {key: node for key, node in _plain(path).items() if key != "defaults"}
            yield from _leaves(f"{path.parent.name}/{path.stem}", "", own)
    root = _plain(conf_folder.conf_dir() / "config.yaml")
    yield from _leaves("config", "", {key: root[key] for key in root if key not in ("defaults", "hydra")})


def _plain(path: Path) -> Any:
    return OmegaConf.to_container(OmegaConf.load(path))


def _leaves(place: str, path: str, node: Any) -> Iterator[Knob]:
    if isinstance(node, dict):
        for name, child in node.items():
            if name != "_target_":
                yield from _leaves(place, f"{path}.{name}" if path else name, child)
        if not node and path:  # a map to fill
            yield Knob(place, path, node)
    elif not (isinstance(node, str) and node.startswith("${") and not node.startswith("${oc.env")):
        yield Knob(place, path, node)


KNOBS = list(knobs())
GROUPS = frozenset(conf_folder.groups())


def _marked(knob: Knob) -> Any:
    marks = {
        "embedder/minilm": [pytest.mark.slow, pytest.mark.xdist_group("minilm")],  # one worker exports, once
        "executor/ray": RAY_OF_TWO,
        "summarizer/t5": [pytest.mark.slow, pytest.mark.xdist_group("t5")],
        "tracking/mlflow": [pytest.mark.slow, pytest.mark.xdist_group("mlflow")],
    }
    return pytest.param(knob, id=str(knob), marks=marks.get(knob.place, []))


@pytest.mark.parametrize("knob", [_marked(knob) for knob in KNOBS])
def test_a_knob_changes_what_its_component_gives(knob: Knob, place: dict[str, Any], tmp_path: Path) -> None:
    frame = knob.frame() | place
    turned = frame | {knob.key: knob.another(tmp_path)}
    changes = _result(knob.group, frame) != _result(knob.group, turned)
    if str(knob) in REASONS:
        assert not changes, f"{knob} changes numbers: take it out of REASONS"
    else:
        assert changes, f"{knob} changes nothing: it is dead, or REASONS must say why"


OFFLINE = (
    *("admission", "annotation", "answerer", "arms", "assembly", "authored", "compaction", "decay", "deduplication"),
    *("extraction", "fusion", "guidance", "ranking", "recall", "recovery", "reinforcement", "replay", "session"),
    *("source", "summarizer", "summary_documents", "summary_expansion", "text_index", "token_estimator"),
)
"""Groups whose every choice runs without a file or a foreign server."""
AROUND: Mapping[str, Mapping[str, Any]] = {
    "answerer": SERVER,
    "fusion": {"ranking": "unified"},
    "ranking": {"decay": "weibull"},  # without one they agree
    "reinforcement": {"decay": "weibull"},
    "replay": TINY,
    "summarizer": SERVER,
    "summarizer/routed": FRAMES["summarizer/routed"],  # without a model it is the other one
}
"""Group, or one of its choices -> settings around it that tell its choices apart."""


@pytest.mark.parametrize("group", OFFLINE)
def test_no_two_choices_of_a_group_give_the_same(group: str) -> None:
    around = {**SMALL, **AROUND.get(group, {})}
    results = [
        _result(group, around | AROUND.get(f"{group}/{choice}", {}) | {group: choice})
        for choice in conf_folder.groups()[group]
    ]
    assert len(set(results)) == len(results)


@pytest.mark.parametrize("table", [REASONS, CHANGED, FRAMES], ids=["reasons", "changed", "frames"])
def test_a_table_names_only_what_exists(table: Mapping[str, object]) -> None:
    assert set(table) <= {str(knob) for knob in KNOBS} | {knob.place for knob in KNOBS}


@pytest.fixture
def place(
    request: pytest.FixtureRequest, knob: Knob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Overrides that name the files which a choice needs."""
    if knob.place == "embedder/minilm":
        request.getfixturevalue("minilm_cache")
        return {}
    if knob.place == "executor/ray":
        request.getfixturevalue("ray_of_two")
        return {}
    if knob.place == "summarizer/t5":
        tiny = request.getfixturevalue("tiny_t5")
        (tmp_path / "untrained").symlink_to(tiny.untrained)
        return {"summarizer.model": str(tiny.trained)}
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    group, _, choice = knob.place.partition("/")
    if group == "dataset" and choice in SMALL_DATASETS:
        (tmp_path / choice).mkdir()
        return {"dataset.directory": SMALL_DATASETS[choice](tmp_path / choice, monkeypatch)}
    match knob.place:
        case "dataset/transcripts":
            return {"dataset.paths": [str(bundled_directory() / "transcripts" / "zhongwen.json")]}
        case "embedder/onnx" | "embedder/nomic":
            build = request.getfixturevalue("build_model")
            directory, another = build("tiny"), build("another", seed=1)
            for model in (directory, another):
                (model / "onnx").mkdir()
                shutil.copy(model / "model.onnx", model / "onnx" / "model.onnx")  # as on the hub
            shutil.copy(another / "model.onnx", directory / "another.onnx")
            return {"embedder.directory": str(directory)}
        case "language_model/openai_compatible":
            profiles = _profiles(tmp_path / "profiles.json", "sk-refused-1", new="sk-refused-2")
            return {
                "language_model.model.base_url": "${oc.env:LCM_TEST_SERVER}/v1",
                "language_model.model.profiles": profiles,
            }
        case "reranker/cross_encoder":
            directory, another = tmp_path / "tiny", tmp_path / "another"
            for model in (directory, another):
                build_cross_encoder(model)
            _sharpen(another / "model.onnx")
            shutil.copy(another / "model.onnx", directory / "another.onnx")
            return {"reranker.directory": str(directory)}
        case "reranker/remote":
            return {"reranker.endpoint": "${oc.env:LCM_TEST_SERVER}/v1"}
        case "tracking/mlflow":
            return {"tracking.uri": f"sqlite:///{request.getfixturevalue('tracked')}/mlflow.db"}
    return {}


def _sharpen(model: Path) -> None:
    """Divide its logits by 5 in place of 10."""
    graph = onnx.load(model)
    (ten,) = (constant for constant in graph.graph.initializer if constant.name == "ten")
    ten.CopyFrom(numpy_helper.from_array(np.array(5, np.float32), "ten"))
    onnx.save(graph, model)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tracked")


def _result(group: str, overrides: Mapping[str, Any]) -> str:
    choices = {key: value for key, value in overrides.items() if key in GROUPS}
    settings = {key: json.dumps(value) for key, value in overrides.items() if key not in GROUPS}
    return result(group, tuple(f"{key}={value}" for key, value in choices.items()), tuple(settings.items()))
