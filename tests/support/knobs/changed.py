"""What a knob is turned to where the rule for its type gives nothing that can matter."""

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from eval.dataset.locomo import Correction, ledger_text
from eval.dataset.sample import bundled_directory
from lcm.retrieval.embedder.export import find_export
from lcm.retrieval.embedder.onnx import WEIGHTS_SHA256
from tests.conftest import ROOT
from tests.eval.dataset import test_dialogsum as dialogsum
from tests.eval.dataset import test_personamem_files as personamem
from tests.eval.dataset import test_qmsum as qmsum
from tests.support.external_results import EXTERNALS
from tests.support.knobs.families import (
    AMACS,
    ANSWERS,
    AUTHORED,
    CLUSTERINGS,
    CONTINUITIES,
    FOLDINGS,
    GATES,
    KINDS,
    LOSSLESS,
    ORDERS,
    POOLS,
    RECALLS,
    RECOVERIES,
    SESSIONS,
    TIERS,
    WEIGHTED,
)
from tests.support.knobs.small_datasets import SMALL_DATASETS
from tests.support.small_locomo import RECORD
from tests.support.small_longmemeval import published


def _copy(name: str, here: Path) -> str:
    return str(shutil.copytree(here / name, here / "copy"))


def _another_file(records: Sequence[object], here: Path) -> str:
    return _written(here / "another.jsonl", "".join(json.dumps(record) + "\n" for record in records))


def _another_context(here: Path) -> str:
    here.joinpath("another").mkdir()
    return str(personamem.write_published(here / "another", [personamem.QUESTION]))


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def profiles(path: Path, old: str, **others: str) -> str:
    """A file of key profiles, each with its key."""
    path.write_text(json.dumps({name: {"api_key": key} for name, key in {"old": old, **others}.items()}))
    return str(path)


ANOTHER_TALK = RECORD | {"qa": [{"question": "What is lovely?", "category": 4, "evidence": ["D1:2"]}]}
ONE_OF_TWO = {
    "beam": "beam-100K-2",
    "locomo": "conv-1",
    "longmemeval": "hay1",
    "dialogsum": "two",
    "lmeb": "scene_1",
    "personamem": "bo",
    "qmsum": "meeting-1",
}
"""Dataset -> one of the two conversations of its small copy."""
LEDGER = ledger_text([Correction("conv-1/0", ("D2:1",), ("D1:2",), False, "wrong", "knobs", "1")])
TEMPORAL_PATTERNS = (
    *("how many days", "how long", "before or after", "since or between", "first or earlier", "when did"),
)
ANOTHER_MODEL = {"directory": lambda here: str(here / "another"), "file": "another.onnx", "threads": 1}
LIMITED = {"limit": {"_target_": "lcm.retrieval.ranking.stages.selection.Limit", "n": 3}}

CHANGED: Mapping[str, Any] = {
    "config:judgements": lambda here: _written(here / "qrels", "q0 0 m3 1\n"),
    "config:stages.directory": lambda here: str(here / "stages"),
    **{
        f"admission/{name}:admit_threshold": 0.95  # never below the other
        for name in AMACS
    },
    **{f"admission/{name}:utility_veto": 0.9 for name in AMACS},
    "admission/balanced_batch:utility.size": 1,
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
    "admission/gating:rules": "original",
    "admission/libravdb:rules": "corrected",
    **{f"annotation/{name}:fallback": "patterns" for name in ("rules", "lancedb_pro_tuned")},
    "arms/recorded_run:recorded.file": lambda here: _written(here / "run", "q0 Q0 m3 1 2.5 theirs\n"),
    **{f"replay/{name}:haystack": "pooled" for name in ("bulk", "per_turn")},
    **{f"arms/controls:{arm}.order": [] for arm in ("bm25", "dense", "last_n", "random", "whole_history")},
    **{f"arms/controls:{arm}.stages": LIMITED for arm in ("last_n", "random", "whole_history")},
    "arms/controls:bm25.stages.score.column": "cosine",
    "arms/controls:dense.stages.score.column": "bm25",
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
    "authored/files:rules": "original",
    "authored/libravdb:rules": "corrected",
    **{f"assembly/{name}:timezone": "Asia/Tokyo" for name in LOSSLESS},
    **{f"assembly/{name}:max_budget_tokens": 1000 for name in LOSSLESS},
    **{f"assembly/{name}:shares.hard_fraction": 0.1 for name in CONTINUITIES},  # 0 is all of it, and so is 1
    "assembly/continuity:rules": "original",
    "assembly/libravdb:rules": "1.4.4",
    "assembly/libravdb:tail.budget_fraction": 0.9,
    "assembly/lossless:eviction": "relevance",
    "assembly/lossless:rules": "original",
    "assembly/lossless_claw:eviction": "chronological",
    "assembly/lossless_claw:fresh_tail_max_tokens": 4000,
    "assembly/lossless_claw:rules": "corrected",
    **{
        f"compaction/{name}:{key}": value
        for name in FOLDINGS
        for key, value in {
            "max_budget_tokens": 100,
            "condensed_min_fanout_hard": 3,
            "incremental_max_depth": 0,
            "timezone": "Asia/Tokyo",
            "sweep_deadline_seconds": 60.0,
            "until_under_deadline_seconds": 150.0,
            "fresh_tail_max_tokens": 4000,
            "summary_prefix_target_tokens": 3000,
            "max_sweep_passes": 1,
            "fallback_max_tokens": 100,
            "injected_context_tags": ["recalled"],
        }.items()
    },
    **{f"compaction/{name}:min_turns": 9 for name in CLUSTERINGS},
    **{f"compaction/{name}:tail_budget_tokens": 1000 for name in CLUSTERINGS},
    "compaction/clustering:rules": "original",
    "compaction/libravdb:rules": "1.4.4",
    "compaction/lossless:rules": "original",
    **{f"compaction/{name}:fresh_tail_max_count": 200 for name in FOLDINGS},
    **{f"compaction/{name}:fresh_tail_novelty": 0.0 for name in FOLDINGS},
    **{f"compaction/{name}:min_leaf_tokens": 2000 for name in FOLDINGS[1:]},
    **{f"compaction/{name}:rules": "corrected" for name in FOLDINGS[1:]},
    **{f"kinds/{name}:{name}.n": 3 for name in ("later_mention", "successor", "tool_result", "written")},
    **{f"kinds/{name}:{name}.most_words": 8 for name in KINDS},
    **{f"kinds/{name}:{name}.least_words": 7 for name in KINDS},
    **ANSWERS,
    "measures/latency:latency.queries": 3,
    **EXTERNALS,
    "executor/ray:address": "local",
    "executor/ray:num_cpus": 2,
    "executor/ray:runtime_env": {"env_vars": {"WEATHER": "fair"}},
    **{f"dataset/{name}:directory": partial(_copy, name) for name in SMALL_DATASETS},
    "measures/retention:retention.rouge_threshold": 1.0,
    **{f"dataset/{name}:only": [one] for name, one in ONE_OF_TWO.items()},
    "dataset/beam:chats": "truncated",
    "dataset/beam:file": "another/data/table.parquet",
    "dataset/beam:size": "500K",
    "dataset/beir:split": "dev",
    "dataset/beir:subset": "tiny",
    "dataset/locomo:evidence": "repaired",
    "dataset/locomo:file": lambda here: _written(here / "another.json", json.dumps([ANOTHER_TALK])),
    "dataset/locomo:ledger": lambda here: _written(here / "ledger.jsonl", LEDGER),
    "dataset/longmemeval:file": lambda here: _written(here / "longmemeval_s", json.dumps([published("q1")])),
    "dataset/longmemeval:protocol": "all",
    "dataset/dialogsum:file": partial(_another_file, dialogsum.RECORDS[:1]),
    "dataset/lmeb:subsets": ["temporal"],
    "dataset/lmeb:task": "Other",
    "dataset/personamem:file": _another_context,
    "dataset/qmsum:file": partial(_another_file, [qmsum.ANOTHER]),
    "dataset/qmsum:marks": "keep",
    "dataset/sample:directory": lambda here: str(bundled_directory()),
    "dataset/sample_long:directory": lambda here: str(bundled_directory("sample_long")),
    "dataset/own:format": "chat",
    "dataset/own:paths": lambda here: [str(here / "said" / "rope.jsonl")],
    "dataset/own:questions": lambda here: str(here / "tar.csv"),
    "dataset/own:similarity": 1.0,
    "dataset/own:store": lambda here: str(here / "memory.db"),
    "dataset/own:workspace": "file",
    "dataset/own:copies": "all",
    "dataset/transcripts:copies": "all",
    "dataset/transcripts:format": "chat",
    "dataset/transcripts:paths": [str(bundled_directory() / "transcripts" / "ryokou.json")],
    "deduplication/model:min_score": 0.9,
    "deduplication/rule:min_score": 0.9,  # what is farther away is of no topic
    "deduplication/model:profile_min_score": 0.7,  # no score is below 1/3
    "embedder/minilm:directory": lambda here: str(find_export(WEIGHTS_SHA256, "int8")),
    "embedder/minilm:precision": "fp32",
    "embedder/minilm:threads": 1,
    "embedder/minilm:file": "model.onnx",
    "embedder/minilm:model": "BAAI/bge-small-en-v1.5",
    "embedder/minilm:pooling": "cls",
    "embedder/minilm:truncate_dim": 8,
    **{
        f"embedder/{name}:{key}": value
        for name in ("hub", "nomic", "onnx")
        for key, value in {**ANOTHER_MODEL, "pooling": "cls", "truncate_dim": 8, "precision": "fp32"}.items()
    },
    "embedder/openai_compatible:api_key_env": "ANOTHER_KEY",
    "embedder/openai_compatible:batch_size": 1,
    "embedder/openai_compatible:base_url": "${oc.env:LCM_TEST_SERVER}/v2",
    "embedder/openai_compatible:mode": "replay",
    "embedder/openai_compatible:model": "another",
    "embedder/openai_compatible:query_options": {"task": "retrieval.query"},
    "embedder/openai_compatible:document_options": {"task": "retrieval.passage"},
    "embedder/openai_compatible:revision": "2",
    "embedder/openai_compatible:price_per_million_tokens": 2.0,
    **{f"embedder/{name}:device": "cpu" for name in ("hub", "minilm", "nomic", "onnx")},
    "summarizer/t5:device": "cpu",
    **{f"embedder/{name}:model": "intfloat/multilingual-e5-small" for name in ("nomic", "onnx")},
    "embedder/hub:model": lambda here: str(here / "another"),
    "embedder/hub:max_tokens": 12,
    "embedder/hub:query_prefix": "query: ",
    "embedder/hub:document_prefix": "passage: ",
    **{f"extraction/{name}:passages": ["words"] for name in ("passages", "steps", "verbatim", "window")},
    **{f"extraction/{name}:passage_characters": 120 for name in ("passages", "steps")},
    **{f"extraction/{name}:exchange_characters": most for name, most in (("passages", None), ("steps", 120))},
    **{
        f"extraction/llm:{key}": value
        for key, value in (("max_chars", 300), ("min_messages", 20), ("rules", "beta.11"))
    },
    **{f"fusion/{name}:weights": {"session": 5.0} for name in WEIGHTED},
    "fusion/plain_sum:floor_ratio": 2.0,  # below 1 a floor is never above the sum
    "language_model/openai_compatible:directory": lambda here: str(here / "kept"),
    "language_model/openai_compatible:mode": "live",
    "language_model/openai_compatible:model.api_key_env": "ANOTHER_KEY",
    "language_model/openai_compatible:model.api_key_file": lambda here: str(here / "key"),
    "language_model/openai_compatible:model.base_url": "${oc.env:LCM_TEST_SERVER}/v2",
    "language_model/openai_compatible:model.model": "another",
    "language_model/openai_compatible:model.profile": "new",
    "language_model/openai_compatible:model.profiles": lambda here: profiles(here / "others.json", "sk-refused-3"),
    **{f"fusion/{name}:floor_from": 0.85 for name in ("weighted_sum", "lancedb_pro_tuned")},
    "fusion/lancedb_pro_tuned:floor_ratio": 2.0,  # likewise: its weights are near 1
    "reranker/lancedb_pro_tuned:window": 3,
    **{f"fusion/{name}:frequency_over": "all" for name in ("two_pass", "two_pass_libravdb")},
    "fusion/two_pass:rules": "original",
    "fusion/two_pass_libravdb:rules": "corrected",
    # Half of it protects nothing either.
    **{f"guidance/{name}:{who}_stability": 0.9 for name in ("corrected", "libravdb") for who in ("assistant", "other")},
    "guidance/corrected:booster_embedder": {"_target_": "lcm.retrieval.embedder.hashing.Hashing"},
    "ranking/lancedb_pro:mode": "vector",
    "ranking/lancedb_pro:stages.dense_only.column": "cosine",
    "ranking/lancedb_pro:stages.lexical_only.column": "bm25",
    **{f"ranking/lancedb_pro:stages.{name}.threshold": 0.5 for name in ("hard_min_score", "min_score")},
    "ranking/lancedb_pro:tag.source.pool_size": 1,  # few documents carry a tag
    "ranking/lancedb_pro:order": "code",
    "ranking/lancedb_pro:stages.related.pool_size": 1,
    **{f"ranking/lancedb_pro:hybrid.orders.{name}": ["dense_score", "lexical_score", "fusion"] for name in ORDERS},
    **{f"ranking/lancedb_pro:vector.orders.{name}": ["dense_score", "dense_only"] for name in ORDERS},
    **{f"ranking/lancedb_pro:tag.orders.{name}": ["lexical_score", "lexical_only"] for name in ORDERS},
    **{f"ranking/{name}:order": ["dense_score", "lexical_score", "fusion"] for name in ("hybrid", "libravdb")},
    "ranking/libravdb:stages.hops.theta_hop": 0.4,
    "ranking/neighbours:order": ["scores", "fusion"],
    **{f"ranking/unified:source.{name}": 0 for name in ("whole_documents", "speakers", "times")},
    "ranking/unified:stages.session_crowding.within": "turn",
    "ranking/unified:stages.crowding.within": "session",
    "ranking/unified:order": ["scores", "words", "vectors", "likeness", "speakers", "times", "form", "fusion"],
    **{f"recall/{name}:max_regex_rows": 10 for name in RECALLS},
    **{f"recall/{name}:regex_timeout_seconds": 1e-9 for name in RECALLS},  # no row is looked at in time
    "recall/default:order": "time",
    "recall/default:rules": "original",
    "recall/lossless_claw:order": "relevance",
    "recall/lossless_claw:rules": "corrected",
    "recall/lossless_claw_0_15:order": "relevance",
    "recall/lossless_claw_0_15:rules": "corrected",
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
    **{
        f"reranker/cross_encoder:{key}": value
        for key, value in {
            **ANOTHER_MODEL,
            "activation": "none",
            "max_tokens": 16,
            "precision": "fp32",
            "device": "cpu",
            "model": "a/b",
        }.items()
    },
    # Both leave 0.8 to a weak document that is not returned, so less of one of them alone shows in nothing.
    "reranker/remote:blend.unreturned_weight": 0.9,
    "reranker/remote:blend.weak_floor_unreturned": 0.9,
    "reranker/remote:api_key_env": "ANOTHER_KEY",
    "reranker/remote:endpoint": "${oc.env:LCM_TEST_SERVER}/v2",
    "reranker/remote:fallback.window": 1,
    "reranker/remote:model": "another",
    "reranker/remote:provider": "tei",
    "reranker/remote:top_n": 1,
    "scopes/default:agent_access": {"ann": ["custom:x"]},
    "scopes/default:default": "custom:x",
    "scopes/default:definitions": {"custom:x": None},
    "scopes/default:shared": ["custom:x"],
    **{f"session/{name}:ignore_patterns": ["agent:*:cron:**"] for name in SESSIONS},
    **{f"session/{name}:stateless_patterns": ["agent:*:subagent:**"] for name in SESSIONS},
    **{
        f"session/{name}:large_file_summarizer": {"_target_": "lcm.compaction.summarizer.chain.Truncate"}
        for name in SESSIONS
    },
    "session/default:bootstrap_max_tokens": 6000,
    "session/default:large_file_threshold_tokens": 25_000,
    "session/default:rules": "original",
    "session/default:import_cap_share": 0.01,
    "session/lossless_claw:rules": "corrected",
    **{f"source/by_scope:{pool}_pool_size": 3 for pool in POOLS},
    **{f"source/branches:branches.{path}.pool_size": 7 for path in ("dense", "lexical", "session", "session.branch")},
    "source/branches:branches.speaker.branch.pool_size": 1,
    "source/branches:branches.session.lends": "sum",
    **{
        f"source/{path}embedder": {"_target_": "lcm.retrieval.embedder.hashing.Hashing", "dim": 64}
        for path in ("dense:", "branches:branches.dense.", "branches:branches.speaker.branch.")
    },
    **{
        f"source/{path}text_index": {"_target_": "lcm.retrieval.text_index.Bm25s"}
        for path in ("lexical:", "branches:branches.lexical.", "branches:branches.session.branch.")
    },
    **{f"source/{name}:pool_size": 7 for name in ("dense", "lexical", "recent", "shuffled")},
    **{f"source/hybrid:{path}_pool_size": 7 for path in ("dense", "lexical")},
    "summarizer/chain:order": ["truncate"],
    "summarizer/extractive:code_share": 1.0,
    "summarizer/extractive:previous_share": 1.0,
    "summarizer/extractive:speaker": 0.0,
    "summarizer/llm:custom_instructions": "Name every ship.",
    "summarizer/t5:model": lambda here: str(here / "untrained"),
    "summarizer/t5:precision": "int8",
    "summarizer/t5:beams": 3,
    "summarizer/t5:max_new_tokens": 4,
    "summarizer/t5:max_input_tokens": 32,
    "summarizer/t5:prefix": "the garden. ",
    "summarizer/t5:threads": 1,
    **{f"summarizer/{name}:marker": "[cut]" for name in ("truncate", "truncate_0_15")},
    "summarizer/truncate:max_tokens": 100,
    "summarizer/truncate_0_15:max_units": 100,
    "summarizer/truncate_0_15:aggressive_max_units": 100,
    "token_estimator/weighted:rules": "0.15",
    **{f"text_index/{name}:stop_words": "none" for name in ("bm25s", "fts5", "lancedb")},
    **{f"text_index/{name}:stemmer": "none" for name in ("bm25s", "lancedb")},
    "text_index/lancedb:max_token_length": 4,
    "summary_expansion/bounded:policy.confidence_threshold": 0.95,
    "summary_expansion/bounded:policy.token_budget": 15,
    "summary_documents/replacing:covered": "searchable",
    "summary_documents/searchable:covered": "hidden",
    "token_estimator/code_points:rounding": "up",
    "token_estimator/code_points_up:rounding": "down",
    "token_estimator/script_chars:alphabet_units": 3.0,
    "token_estimator/script_chars:other_units": 5.0,
    "tracking/mlflow:experiment": "another",
    "tracking/mlflow:run_name": "another",
    "tracking/mlflow:uri": lambda here: f"sqlite:///{here}/another.db",
    "vector_index/hnsw:exact_below": 100,
    **{f"vector_index/{name}:ef_a_result": 6 for name in ("hnsw", *TIERS)},
    **{f"vector_index/{name}:largest_share": 0.01 for name in ("hnsw", *TIERS)},
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
            "candidates_a_result": 15,
            "candidates_share": 0.01,
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
