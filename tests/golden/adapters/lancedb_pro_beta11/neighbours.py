"""memory-lancedb-pro 1.1.0-beta.11's neighbours of results onto our stage `related`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from lcm.javascript import clamp_int
from lcm.retrieval.ranking.routed import RoutedRanking
from lcm.retrieval.ranking.stages.selection import Related
from tests.golden.adapters.lancedb_pro import pipeline
from tests.golden.adapters.lancedb_pro_beta11.retrieval import BETA11

MOST_LOOKED_UP = 50
"""Asked of the store at most, which gives fewer."""


@dataclass
class Store(pipeline.Stub):
    """A text index that answers the text of each result with rows of its own, or fails."""

    lookups: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    failing: Collection[str] = ()
    calls: list[tuple[str, int]] = field(default_factory=list)

    def search(self, queries: Any, k: int, allowed: Sequence[str] | None) -> list[tuple[list[str], list[float]]]:
        (text,) = queries
        if text not in self.lookups and text not in self.failing:
            return super().search(queries, k, allowed)
        self.calls.append((text, k))
        return pipeline.Stub(self.lookups.get(text, ()), text in self.failing).search(queries, k, allowed)


def neighbor_enrichment(case: dict[str, Any]) -> dict[str, Any]:
    answer = pipeline.answered(case, BETA11)
    wanted = case["config"]["neighbor_enrichment"]
    if not wanted["enabled"]:
        return answer
    limit = clamp_int(float(case["limit"]), 1, 20)
    paths = with_related(pipeline.paths_of(case, limit, BETA11), clamp_int(float(wanted["max_per_result"]), 1, 5))
    batch, *_ = pipeline.asked(case, paths.path_of(case["query"]), BETA11)
    lookups = apart(case["neighbor_rows"], {row["id"] for row in answer["results"]})
    store = Store(case["bm25_results"], lookups=lookups, failing=case["neighbor_fails"])
    others = [row for rows in lookups.values() for row in rows if is_visible(row, case)]
    ranked = paths.ranking(paths.path_of(case["query"])).rank(
        replace(
            batch,
            documents=pl.concat([batch.documents, pipeline.documents(others, case)]),
            allowed=[*(batch.allowed or ()), *(row["id"] for row in others)],
            text_index=store,
        )
    )
    scope_of = {row["text"]: row["scope"] for row in (*case["vector_results"], *case["bm25_results"])}
    calls = [
        {"op": "neighbor", "query": text, "limit": k, "scopes": [scope_of[text]]}
        for text, k in store.calls
        if is_readable(scope_of[text], case)  # these vectors hold results of other scopes, which no query of ours sees
    ]
    results = [result(*row) for row in ranked.select("document_id", "score", "related").iter_rows()]
    return answer | {"results": results, "store_calls": [*answer["store_calls"], *calls]}


def with_related(paths: RoutedRanking, per_result: int) -> RoutedRanking:
    """The paths with neighbours switched on; the rows that are looked up carry the store's scores."""
    stage: Related = paths.stages["related"]  # type: ignore[assignment]
    related = replace(
        stage,
        stages={name: paths.stages[name] for name in stage.stages},
        per_result=per_result,
        pool_size=MOST_LOOKED_UP,
        containment=False,
    )
    return replace(paths, stages={**paths.stages, "related": related})


def apart(lookups: Mapping[str, Sequence[dict[str, Any]]], results: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows with ids that differ: what is no result has other content wherever it comes."""
    return {
        text: [
            row if row["id"] in results else row | {"id": f"{row['id']} of {text} at {place}"}
            for place, row in enumerate(rows)
        ]
        for text, rows in lookups.items()
    }


def is_visible(row: dict[str, Any], case: dict[str, Any]) -> bool:
    """Whether a query of ours sees a row; one that is a result itself is seen already."""
    return pipeline.is_seen(row, case, BETA11) and is_readable(row["scope"], case) and " of " in row["id"]


def is_readable(scope: str, case: dict[str, Any]) -> bool:
    return scope in (case.get("scope_filter") or [scope])


def result(document_id: str, score: float, related: Sequence[dict[str, Any]]) -> dict[str, Any]:
    neighbors = [
        {"id": one["document_id"].partition(" of ")[0], "score": one["score"], "rank": rank}
        for rank, one in enumerate(related, start=1)
    ]
    return {"id": document_id, "score": score} | ({"neighbors": neighbors} if neighbors else {})
