"""libravdb memory's scores and hops onto ours."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.records.document import GLOBAL_SCOPE
from lcm.retrieval.frames import best_first
from lcm.retrieval.source.by_scope import pooled
from lcm.retrieval.source.indexes import branch, describe, merge
from lcm.store.documents import DOCUMENT_SCHEMA
from tests.golden.adapters.libravdb import plugin_settings
from tests.golden.components import asking, component, documents_batch, instant
from tests.golden.originals import fusion_settings

HYBRID_KEYS = {
    "alpha": "alpha",
    "beta": "beta",
    "gamma": "gamma",
    "delta": "compactionQualityWeight",
    "recency_lambda_session": "recencyLambdaSession",
    "recency_lambda_user": "recencyLambdaUser",
    "recency_lambda_global": "recencyLambdaGlobal",
}
TWO_PASS_KEYS = {
    "k1": "section7CoarseTopK",
    "k2": "section7SecondPassTopK",
    "theta1": "section7Theta1",
    "kappa": "section7Kappa",
    "authority_recency_lambda": "section7AuthorityRecencyLambda",
    "authority_recency_weight": "section7AuthorityRecencyWeight",
    "authority_frequency_weight": "section7AuthorityFrequencyWeight",
    "authority_authored_weight": "section7AuthorityAuthoredWeight",
}
HOP_KEYS = {"eta_hop": "section7HopEta", "theta_hop": "section7HopThreshold"}


def hybrid_scoring(case: dict[str, Any]) -> dict[str, Any]:
    config = {HYBRID_KEYS[name]: value for name, value in case["options"].items()}
    decay = replace(component("decay=exponential", "decay"), **plugin_settings.exponential(config))
    fusion = replace(component("fusion=hybrid_score", "fusion"), recency=decay, **plugin_settings.hybrid_score(config))
    batch = workspace(case)
    return {"ranked": ranked(fusion(candidates(case["items"], batch), batch))}


def discovery_scoring(case: dict[str, Any]) -> dict[str, Any]:
    config = {TWO_PASS_KEYS[name]: value for name, value in case["options"].items()}
    decay = replace(component("decay=authority", "decay"), **plugin_settings.authority_decay(config))
    fusion = replace(component("fusion=two_pass_libravdb", "fusion"), recency=decay, **fusion_settings.two_pass(config))
    batch = workspace(case)
    return {"ranked": ranked(fusion(candidates(case["items"], batch), batch))}


def hop_expansion(case: dict[str, Any]) -> dict[str, Any]:
    config = {HOP_KEYS[name]: value for name, value in case["options"].items()}
    stage = replace(component("ranking=libravdb", "ranking").stages["hops"], **plugin_settings.hops(config))
    parents = twins_apart(case["ranked"])
    known = {key(item): item for item in [*case["authored_variants"], *parents]}
    batch = workspace({"items": list(known.values())}, {item["id"] for item in case["authored_variants"]})
    targets = {key(item): plugin_settings.targets_of(item["metadata"].get("hop_targets")) for item in parents}
    pointing = batch.documents["document_id"].replace_strict(targets, default=[], return_dtype=pl.List(pl.String))
    batch = replace(batch, documents=batch.documents.with_columns(hop_targets=pointing))
    scores = {key(item): float(item.get("final_score", 0)) for item in parents}
    frame = candidates(parents, batch)
    before = frame.with_columns(score=frame["document_id"].replace_strict(scores, return_dtype=pl.Float64))
    after = stage.expand(before, batch)
    added = after.join(before, on=["query_id", "document_id"], how="anti", maintain_order="left")
    unscored = {key(item) for item in parents if "final_score" not in item}  # counts as 0, and stays without
    best = (
        best_first(after)
        .with_columns(id=pl.col("document_id").str.split("\n").list.last())
        .unique("id", keep="first", maintain_order=True)
    )
    merged = [
        {"id": row["id"]} if row["document_id"] in unscored else {"id": row["id"], "final_score": row["score"]}
        for row in best.iter_rows(named=True)
    ]
    return {"hop": ranked(added), "merged": merged}


def twins_apart(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items, those that share an id put into collections of their own: each points to what it points to."""
    seen: Counter[str] = Counter()
    apart = []
    for item in items:
        twin = seen[item["id"]]
        seen[item["id"]] += 1
        metadata = {**item["metadata"], "collection": f"twin {twin}"} if twin else item["metadata"]
        apart.append({**item, "metadata": metadata})
    return apart


def workspace(case: dict[str, Any], authored: Sequence[str] | set[str] = ()) -> Batch:
    """The case's records as documents of a batch with its query; of two records with one key the first stays."""
    items = {key(item): item for item in reversed(case["items"])}
    metadata = [item["metadata"] for item in items.values()]
    own = f"user:{case.get('user_id')}"
    columns: dict[str, list[Any]] = {
        "document_id": list(items),
        "text": [item.get("text", "") for item in items.values()],
        "kind": ["authored" if key(i) in authored else i["metadata"].get("type", "message") for i in items.values()],
        "session_id": [m.get("session_id", "") for m in metadata],
        "conversation_id": [m.get("session_id", "") for m in metadata],
        "scope": [own if f"user:{m.get('user_id')}" == own else GLOBAL_SCOPE for m in metadata],
        "created_at": [instant(m["ts"]) if "ts" in m else None for m in metadata],
        "access_count": [m.get("access_count", 0) for m in metadata],
        "authority": [float(m.get("authority", m.get("authored") is True)) for m in metadata],
        "decay_rate": [float(m.get("decay_rate", 0)) for m in metadata],
    }
    documents = pl.DataFrame(columns, schema={name: DOCUMENT_SCHEMA[name] for name in columns})
    return replace(
        documents_batch([]),
        queries=asking(case.get("query", ""), case.get("now_ms", 0), case.get("session_id")),
        documents=documents.match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert"),
        scopes=(own, GLOBAL_SCOPE),
    )


def candidates(items: list[dict[str, Any]], batch: Batch) -> pl.DataFrame:
    """Rows in the order in which the searches found them."""
    pools = [branch([([key(item)], [float(item["score"])])], "cosine", "dense_rank") for item in items]
    return describe(merge(batch, pooled(pools)), batch)


def key(item: dict[str, Any]) -> str:
    """Of a record among several collections."""
    collection = item["metadata"].get("collection", "")
    return f"{collection}\n{item['id']}" if collection else str(item["id"])


def ranked(frame: pl.DataFrame) -> list[dict[str, Any]]:
    rows = best_first(frame).select("document_id", "score").iter_rows()
    return [{"id": document_id.rpartition("\n")[2], "final_score": score} for document_id, score in rows]
