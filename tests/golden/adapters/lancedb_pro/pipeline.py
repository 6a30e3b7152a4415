"""memory-lancedb-pro's retrieval, from the store's rows to the answer, onto our rankings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from lcm.errors import LcmError
from lcm.javascript import clamp_int, utf16_length
from lcm.protocols.retrieval import Batch
from lcm.retrieval.decay import Weibull
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.routed import RoutedRanking
from lcm.retrieval.reranker import Cosine, RerankItem, with_replies
from lcm.retrieval.source.indexes import Hybrid, QueryExpansion
from lcm.store.documents import DOCUMENT_SCHEMA
from tests.golden.adapters.lancedb_pro.decay import configured, life, memories
from tests.golden.adapters.lancedb_pro.ranking import parsed, unit_vectors
from tests.golden.components import asking, component, documents_batch
from tests.golden.originals import row_metadata as metadata

CALLERS = {"manual": "manual", "cli": "cli"}
STORE_MIN_SCORE = 0.1
"""Asked of the store by the hybrid path; 1 / (1 + d) is never below 1/3."""
POOL_SIZE = 20


@dataclass(frozen=True)
class Version:
    """What a version of the plugin is among our choices."""

    ranking: str
    """The override that chooses its ranking."""
    order: str
    """Of the stages with a decay engine; without one it ends in _no_engine."""
    decay: Callable[[dict[str, float]], Weibull]
    """Its decay with the settings of a case."""
    is_of_category: Callable[[dict[str, Any], str], bool]
    """Whether a row is of the wanted category."""


BETA10 = Version("ranking=lancedb_pro", "code", configured, lambda row, wanted: row.get("category", "fact") == wanted)

STAGE_COUNTS = {
    "after_min_score": ("min_score", "not_expired"),
    "rerank_input": (),
    "after_rerank": ("reranker",),
    "after_recency": ("recency_boost",),
    "after_importance": ("importance_weight",),
    "after_length_norm": ("length_normalization",),
    "after_time_decay": ("decay", "time_decay"),
    "after_hard_min_score": ("hard_min_score",),
    "after_noise_filter": ("noise_filter",),
    "after_diversity": ("diversity",),
}


def query_expansion(case: dict[str, Any]) -> dict[str, str]:
    expansion = expansion_of({})
    assert expansion is not None
    return {
        "expanded": expansion.expand(case["query"], "manual"),
        "bm25_query": expansion.expand(case["query"], CALLERS.get(case["source"], "auto")),
    }


def tag_tokens(case: dict[str, Any]) -> dict[str, Any]:
    paths: RoutedRanking = component("ranking=lancedb_pro", "ranking")
    prefixes = case["config"].get("tag_prefixes", paths.tags.prefixes)
    paths = replace(paths, tags=replace(paths.tags, prefixes=prefixes))
    return {"tokens": paths.tags.tags(case["query"]), "tag_path": paths.path_of(case["query"]) == "tag"}


def pipeline_hybrid(case: dict[str, Any]) -> dict[str, Any]:
    return answered(case)


def pipeline_vector(case: dict[str, Any]) -> dict[str, Any]:
    return answered(case)


def pipeline_tag(case: dict[str, Any]) -> dict[str, Any]:
    return answered(case)


def answered(case: dict[str, Any], version: Version = BETA10) -> dict[str, Any]:
    config = case["config"]
    limit = clamp_int(float(case["limit"]), 1, 20)
    paths = paths_of(case, limit, version)
    path = paths.path_of(case["query"])
    batch, dense, lexical = asked(case, path, version)
    ranking = paths.ranking(path)
    trace = ranking.trace(batch)
    counts = counted(ranking, trace)
    if path == "hybrid" and config.get("rerank") != "none":
        counts["rerank_input"] = min(counts["rerank_input"], 2 * limit)
    born = counts.pop("source")
    # Without a fusion the plugin counts what is left of the branch once expired rows are dropped.
    counted_rows = born if path == "hybrid" else counts["after_min_score"]
    wanted = config.get("mode", "hybrid")
    min_score = config.get("min_score", component("ranking=lancedb_pro", "ranking").stages["min_score"].threshold)
    return {
        "results": ranking.rank(batch).select(id="document_id", score="score").to_dicts(),
        "bm25_query": None if path == "vector" and wanted == "vector" else (lexical.queries or [case["query"]])[0],
        "query_expanded": bool(lexical.queries) and lexical.queries[0] != case["query"],
        "limit": limit,
        "vector_result_count": {"hybrid": found(ranking, batch, "dense_rank"), "vector": counted_rows}.get(path, 0),
        "bm25_result_count": {"hybrid": found(ranking, batch, "lexical_rank"), "tag": counted_rows}.get(path, 0),
        "fused_result_count": counted_rows,
        "stage_counts": counts,
        "store_calls": [
            *(
                {"op": "vector", "limit": k, "min_score": STORE_MIN_SCORE if path == "hybrid" else min_score}
                for k in dense.limits[:1]
            ),
            *({"op": "bm25", "query": lexical.queries[0], "limit": k} for k in lexical.limits[:1]),
        ],
    }


def counted(ranking: Ranking, trace: pl.DataFrame) -> dict[str, int]:
    """How many candidates each stage left; one that is not in the path leaves what it got."""
    left = dict(trace.group_by("stage").len().iter_rows())
    names = ("source", *(ranking.order or ranking.stages))
    by_stage = {name: int(left.get(name, 0)) for name in names if name == "source" or ranking.stages[name] is not None}
    counts = {"source": by_stage["source"]}
    now = by_stage["source"]
    for key, stages in STAGE_COUNTS.items():
        for stage in stages:
            now = by_stage.get(stage, now)
        counts[key] = now
    return counts


def found(ranking: Ranking, batch: Batch, rank: str) -> int:
    return ranking.source.candidates(batch)[rank].is_not_null().sum()


def paths_of(case: dict[str, Any], limit: int, version: Version) -> RoutedRanking:
    config, window = case["config"], 2 * limit
    order = version.order if case["use_decay_engine"] else f"{version.order}_no_engine"
    paths: RoutedRanking = component(version.ranking, "ranking", f"ranking.order={order}")
    pool_size = max(config.get("candidate_pool_size", POOL_SIZE), 2 * limit)
    fusion = component("fusion=weighted_sum", "fusion")
    mode = config.get("mode", "hybrid") if case["has_fts_support"] else "vector"
    stages = {
        **paths.stages,
        # The rows carry the store's scores: these vectors begin after the score mappings.
        "dense_score": lambda frame, batch: frame.with_columns(dense_score="cosine"),
        "lexical_score": lambda frame, batch: frame.with_columns(lexical_score="bm25"),
        "fusion": replace(
            fusion,
            dense_weight=config.get("vector_weight", fusion.dense_weight),
            lexical_weight=config.get("bm25_weight", fusion.lexical_weight),
        ),
        "reranker": reranker(case, window),
        "noise_filter": paths.stages["noise_filter"] if config.get("filter_noise", True) else None,
        "limit": replace(paths.stages["limit"], n=limit),  # type: ignore[type-var]
        # On the vector path the minimum is the store's to apply, and these rows come from behind it.
        "min_score": paths.stages["min_score"] if mode == "hybrid" else None,
        "decay": replace(paths.stages["decay"], decay=version.decay(case["decay_config"])),  # type: ignore[type-var]
    }
    for stage, key, name in (
        ("min_score", "min_score", "threshold"),
        ("hard_min_score", "hard_min_score", "threshold"),
        ("recency_boost", "recency_half_life_days", "half_life_days"),
        ("recency_boost", "recency_weight", "weight"),
        ("length_normalization", "length_norm_anchor", "anchor"),
        ("time_decay", "time_decay_half_life_days", "half_life_days"),
        ("time_decay", "reinforcement_factor", "reinforcement_factor"),
        ("time_decay", "max_half_life_multiplier", "max_half_life_multiplier"),
    ):
        if key in config and stages[stage] is not None:
            stages[stage] = replace(stages[stage], **{name: config[key]})  # type: ignore[type-var]
    hybrid = Hybrid(pool_size, pool_size, expansion_of(config))
    return replace(
        paths,
        stages=stages,
        mode=mode,
        tags=replace(paths.tags, prefixes=config.get("tag_prefixes", paths.tags.prefixes)),
        hybrid=replace(paths.hybrid, source=hybrid),
        vector=replace(paths.vector, source=replace(paths.vector.source, pool_size=pool_size)),  # type: ignore[type-var]
        tag=replace(paths.tag, source=replace(paths.tag.source, pool_size=pool_size, containment=False)),  # type: ignore[type-var]
    )


def expansion_of(config: dict[str, Any]) -> QueryExpansion | None:
    source: Hybrid = component("source=lancedb_pro", "source")
    return source.expansion if config.get("query_expansion", True) else None


def reranker(case: dict[str, Any], window: int) -> Any:
    if case["config"].get("rerank", "cross-encoder") == "none":
        return component("reranker=none", "reranker")
    scores = case["rerank_scores_by_id"]
    cosine, remote = component("reranker=cosine", "reranker"), component("reranker=remote", "reranker")
    widths = {row["id"]: len(row["vector"]) for row in (*case["vector_results"], *case["bm25_results"])}

    def by_cosine(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Our index holds vectors of one width; where the plugin's rows differ it leaves the list as it is."""
        kept = Cosine(window).first(frame, batch)
        if {widths[document_id] for document_id in kept["document_id"]} <= {len(case["query_vector"])}:
            return replace(cosine, window=window)(frame, batch)
        return kept.with_columns(reranker_score=pl.lit(None, pl.Float64))

    if case["config"].get("rerank", "cross-encoder") == "lightweight" or scores is None:
        return by_cosine

    def replied(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        kept = Cosine(window).first(frame, batch)
        items = [
            RerankItem(index, scores[document_id])
            for index, document_id in enumerate(kept["document_id"])
            if document_id in scores
        ]
        if not items:  # a reply that cannot be used
            return by_cosine(frame, batch)
        return with_replies(kept, {"q": items}, remote.blend)

    return replied


@dataclass
class Stub:
    """An index that answers with given rows, those that are allowed, or fails."""

    rows: Sequence[dict[str, Any]]
    fails: bool = False
    queries: list[str] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)

    def search(self, queries: Any, k: int, allowed: Sequence[str] | None) -> list[tuple[list[str], list[float]]]:
        self.limits.append(k)
        self.queries += queries if isinstance(queries, list) else []
        if self.fails:
            raise LcmError("the index is gone")
        kept = [row for row in self.rows if allowed is None or row["id"] in allowed][:k]
        return [([row["id"] for row in kept], [float(row["score"]) for row in kept])]


def asked(case: dict[str, Any], path: str, version: Version) -> tuple[Batch, Stub, Stub]:
    """One query over the rows that the store returns; only those of the wanted category can be seen."""
    dense = Stub(case["vector_results"], case.get("vector_fails", False))
    lexical = Stub(case["bm25_results"], case.get("bm25_fails", False))
    vouched = set() if dense.fails else {row["id"] for row in dense.rows}
    missing = set(case["missing_ids"]) - vouched if path == "hybrid" else set()
    rows = {row["id"]: row for row in (*lexical.rows, *dense.rows) if row["id"] not in missing}
    wanted = [row for row in rows.values() if is_seen(row, case, version)]
    seen = {row["id"] for row in (*dense.rows, *lexical.rows) if is_seen(row, case, version)}
    vectors = unit_vectors([case["query_vector"], *(row["vector"] for row in wanted)])
    place = {row["id"]: i for i, row in enumerate(wanted, start=1)}
    batch = replace(
        documents_batch([]),
        queries=asking(case["query"], case["now_ms"], caller=CALLERS.get(case["source"], "auto")),
        vectors=vectors[:1],
        documents=documents(wanted, case),
        allowed=sorted(seen),
        vector_index=dense,
        text_index=lexical,
        document_vectors=lambda ids: vectors[[place[document_id] for document_id in ids]],
    )
    return batch, dense, lexical


def is_seen(row: dict[str, Any], case: dict[str, Any], version: Version) -> bool:
    return case["category"] is None or version.is_of_category(row, case["category"])


def documents(rows: Sequence[dict[str, Any]], case: dict[str, Any]) -> pl.DataFrame:
    """Rows of the plugin's store as documents. Without an engine, use is read as the retriever reads it."""
    lives = [life(row, case["now_ms"]) for row in rows]
    if not case["use_decay_engine"]:
        for known, row in zip(lives, rows, strict=True):
            known["access_count"], known["last_accessed_at_ms"] = metadata.access(row.get("metadata"))
    for known, row in zip(lives, rows, strict=True):
        known["id"] = row["id"]
    untils = [parsed(row, case["now_ms"]).get("valid_until") for row in rows]
    return (
        memories(lives, case["now_ms"])
        .drop("asked_at")
        .with_columns(
            pl.col("access_count").cast(pl.Int64),
            kind=pl.Series(["authored" if is_of_corpus(row) else "message" for row in rows], dtype=pl.String),
            scope=pl.Series([row.get("scope", "global") for row in rows], dtype=pl.String),
            text=pl.Series([row["text"] for row in rows], dtype=pl.String),
            length_utf16=pl.Series([utf16_length(row["text"]) for row in rows], dtype=pl.Int64),
            valid_until=pl.Series(untils, dtype=pl.Int64).cast(pl.Datetime("ms", "UTC")),
        )
        .match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert")
    )


def is_of_corpus(row: dict[str, Any]) -> bool:
    """Whether a row is of the files of a workspace, by its id."""
    return str(row["id"]).startswith("corpus:")
