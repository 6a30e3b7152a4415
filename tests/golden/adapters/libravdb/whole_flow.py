"""libravdb memory's whole way from its collections to a context, onto our ranking, recovery and assembly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from lcm.context.assembly.continuity import Continuity
from lcm.protocols.context import ContextRequest
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch
from lcm.records.context import Context
from lcm.records.document import GLOBAL_SCOPE
from lcm.records.query import Recalled
from lcm.records.summary import Summary
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.store.documents import DOCUMENT_SCHEMA
from lcm.writing.dream import asks_for_dreams
from tests.golden.adapters.libravdb import plugin_settings
from tests.golden.adapters.libravdb.assembly import authored_of, configured, message_of
from tests.golden.components import asking, component, documents_batch, instant
from tests.golden.originals import fusion_settings

RAW = "raw:"
"""What the id of a raw copy begins with: the original keeps it beside the active one, with a score of its own."""
CONFIG_KEYS = {
    "top_k": "topK",
    "section7_coarse_top_k": "section7CoarseTopK",
    "section7_second_pass_top_k": "section7SecondPassTopK",
    "section7_theta1": "section7Theta1",
    "section7_kappa": "section7Kappa",
    "section7_hop_eta": "section7HopEta",
    "section7_hop_threshold": "section7HopThreshold",
}
FAILURE_KEYS = {
    "recovery_floor_score": "floor_score",
    "recovery_min_top_k": "min_top_k",
    "recovery_min_confidence_mean": "min_mean_confidence",
}
SEARCHED = {
    "session_hits": "memory",
    "user_hits": "memory",
    "global_hits": "memory",
    "elevated_hits": "guidance",
    "dream_hits": "dream",
}
"""The collections that are searched, and the kind of their documents: no turn, which only recovery looks for."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A vector index that answers with the cosines that it is given."""

    cosines: Mapping[str, float]

    def search(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float]]]:
        among = self.cosines if allowed is None else set(allowed)
        best = sorted((name for name in self.cosines if name in among), key=lambda name: -self.cosines[name])[:k]
        return [(best, [self.cosines[name] for name in best])] * len(vectors)


@dataclass(frozen=True, slots=True)
class AsRecorded:
    """Says of each document which width answered, as the original's records do one by one; and lets authored blocks
    age, for these have a date, which neither parser gives them."""

    tiers: Mapping[str, int]

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        tier = pl.col("document_id").replace_strict(self.tiers, default=None, return_dtype=pl.Int64)
        return frame.with_columns(index_tier=tier, kind=pl.col("kind").replace("authored", "dated"))


def context_assembly(case: dict[str, Any]) -> dict[str, Any]:
    collections = case["collections"]
    prompt = next((said["content"] for said in reversed(case["messages"]) if said["content"].strip()), "")
    turns = [turn for turn in collections["session_turns"] if is_raw(turn)]
    messages = [message_of(turn) for turn in sorted(turns, key=lambda turn: turn["metadata"]["ts"])]
    authored = authored_of(collections)
    assembly = recovering(configured(case["config"]), case["config"])
    shown = assembly.tail_message_ids(messages, case["token_budget"], authored, prompt)
    items = items_of(case, shown)
    is_dream = asks_for_dreams(prompt)
    ranking = ranker(case["config"], assembly, items)
    recalled = answer(ranking, workspace(case, prompt, items), items)
    ask = ContextRequest(case["token_budget"], prompt, recalled, instant(case["now_ms"]))
    [context] = assembly.assemble([*summaries_of(case), *messages], [ask], authored)
    said = [str(message["content"]) for message in context.messages]
    said += [message["content"] for message in case["messages"]]
    notes = context.notes
    return {
        "selected_ids": [name.removeprefix(RAW) for name in notes["injection_order"]],
        "estimated_tokens": sum(assembly.token_estimator.count(said)),
        "degraded": bool(notes["degraded"]),
        "recovery_triggered": notes["has_failed"],
        "cross_session_recovery": notes["is_elsewhere"],
        "recovery_reserve_tokens": notes["reserve_tokens"],
        "searches": searches(ranking, context, shown, is_dream=is_dream),
    }


def is_raw(turn: Mapping[str, Any]) -> bool:
    """Whether a record of a session is a turn: no summary, and no copy that an index tier answered with."""
    return turn["metadata"].get("type") != "summary" and "cascade_tier" not in turn["metadata"]


def summaries_of(case: Mapping[str, Any]) -> list[Summary]:
    """What the search of the session knows beside its turns."""
    collections, session, folded_at = case["collections"], case["session_id"], instant(case["now_ms"])
    turns = {turn["id"] for turn in collections["session_turns"] if is_raw(turn)}
    return [
        Summary(hit["id"], session, "leaf", 0, hit["text"], 0, folded_at)
        for hit in collections["session_hits"]
        if hit["id"] not in turns
    ]


def recovering(assembly: Continuity, config: Mapping[str, Any]) -> Continuity:
    overlay: Any = assembly.recovery
    given = {ours: config[key] for key, ours in FAILURE_KEYS.items() if key in config}
    return replace(assembly, recovery=replace(overlay, failure=replace(overlay.failure, **given)))


def ranker(config: Mapping[str, Any], assembly: Continuity, items: Mapping[str, "Item"]) -> Ranking:
    made: Ranking = component("ranking=libravdb", "ranking")
    plugin = {CONFIG_KEYS[key]: value for key, value in config.items() if key in CONFIG_KEYS}
    sizes = fusion_settings.pool_sizes(plugin)
    top_k = sizes["session_pool_size"]
    decay = replace(component("decay=authority", "decay"), **plugin_settings.authority_decay(plugin))
    fusion = component("fusion=two_pass_libravdb", "fusion")
    widest = assembly.recovery.embedder.dim  # type: ignore[attr-defined]
    tiers = {1: 64, 2: 256, 3: widest}
    named = {
        name: tiers[item.metadata["cascade_tier"]] for name, item in items.items() if "cascade_tier" in item.metadata
    }
    stages: dict[str, Any] = dict(made.stages)
    passes = fusion_settings.two_pass(plugin)
    stages["fusion"] = replace(fusion, recency=decay, **passes, summary_delta=0.0)
    stages["hops"] = replace(stages["hops"], **plugin_settings.hops(plugin))
    stages["recovery"] = replace(
        stages["recovery"],
        recovery=assembly.recovery,
        session_k=max(top_k, 4),
        user_k=max(4 * top_k, 8),
    )
    source = replace(component("source=libravdb", "source"), **sizes)
    return Ranking(source, {"recorded": AsRecorded(named), **stages})


@dataclass(frozen=True, slots=True)
class Item:
    """A record of one of the collections as our documents know it."""

    text: str
    metadata: Mapping[str, Any]
    score: float | None
    """None: it can be known, and no search returns it."""
    kind: str
    session_id: str
    scope: str = GLOBAL_SCOPE
    is_durable: bool = True
    source_id: str = ""


def items_of(case: Mapping[str, Any], shown: Sequence[str]) -> dict[str, Item]:
    """What can be found, without the messages that are shown anyway."""
    collections, own = case["collections"], scope_of(case)
    found: dict[str, Item] = {}
    for name, kind in SEARCHED.items():
        session = case["session_id"] if name == "session_hits" else "elsewhere"
        scope = GLOBAL_SCOPE if name == "global_hits" else own
        for hit in collections[name]:
            if name != "session_hits" or hit["id"] not in shown:
                is_of = "summary" if hit["metadata"].get("type") == "summary" else kind
                found[hit["id"]] = Item(
                    hit["text"], hit["metadata"], hit["score"], is_of, session, scope, True, hit["id"]
                )
    hits = {hit["id"]: hit for hit in collections["authored_variant_hits"]}
    for node in (*collections["authored_variant"], *hits.values()):
        score = hits[node["id"]]["score"] if node["id"] in hits else None
        found[node["id"]] = Item(node["text"], node["metadata"], score, "authored", "")
    for name, session in (("raw_session_hits", case["session_id"]), ("user_turn_hits", "elsewhere")):
        for hit in collections[name]:
            if hit["id"] not in shown:
                found[RAW + hit["id"]] = Item(
                    hit["text"], hit["metadata"], hit["score"], "message", session, own, False, hit["id"]
                )
    return found


def workspace(case: Mapping[str, Any], prompt: str, items: Mapping[str, Item]) -> Batch:
    names = list(items)
    columns: dict[str, list[Any]] = {
        "document_id": names,
        "text": [item.text for item in items.values()],
        "kind": [item.kind for item in items.values()],
        "session_id": [item.session_id for item in items.values()],
        "conversation_id": [item.session_id for item in items.values()],
        "scope": [item.scope for item in items.values()],
        "role": ["user"] * len(names),  # the collections of turns hold those of users alone, whatever they say
        "created_at": [instant(item.metadata["ts"]) for item in items.values()],
        "access_count": [item.metadata.get("access_count", 0) for item in items.values()],
        "authority": [float(item.metadata.get("authority", 0)) for item in items.values()],
        "confidence": [float(item.metadata.get("confidence", 0)) for item in items.values()],
        "is_durable": [item.is_durable for item in items.values()],
        "hop_targets": [plugin_settings.targets_of(item.metadata.get("hop_targets")) for item in items.values()],
    }
    frame = pl.DataFrame(columns, schema={name: DOCUMENT_SCHEMA[name] for name in columns})
    frame = frame.match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert")
    documents = frame.filter("is_durable")
    return replace(
        documents_batch([]),
        queries=asking(prompt, case["now_ms"], case["session_id"]),
        vectors=np.ones((1, 1), dtype=np.float32),
        documents=documents,
        allowed=documents["document_id"].to_list(),
        vector_index=Scored({name: item.score for name, item in items.items() if item.score is not None}),  # type: ignore[arg-type]
        scopes=(scope_of(case), GLOBAL_SCOPE),
        is_in_session=any(is_raw(turn) for turn in case["collections"]["session_turns"]),
        turns=frame.filter(~pl.col("is_durable")),
    )


def answer(ranking: Ranking, batch: Batch, items: Mapping[str, Item]) -> list[Recalled]:
    columns = ("document_id", "score", "cosine", "scope_class", "index_tier", "is_recovered")
    return [
        Recalled(
            name,
            items[name].text,
            "message" if items[name].kind == "memory" else items[name].kind,
            (items[name].source_id,) if items[name].source_id else (),
            instant(items[name].metadata["ts"]),
            score or 0.0,
            cosine or 0.0,
            items[name].metadata.get("role", ""),
            scope_class,
            items[name].metadata.get("confidence", 0.0),
            index_tier,
            is_recovered,
            items[name].metadata.get("token_estimate", 0),
        )
        for name, score, cosine, scope_class, index_tier, is_recovered in ranking.rank(batch)
        .select(columns)
        .iter_rows()
    ]


def searches(
    ranking: Ranking, context: Context, shown: Sequence[str], *, is_dream: bool = False
) -> list[dict[str, Any]]:
    """Which collections the original would have searched, by the settings of our parts."""
    notes, source, fetch = context.notes, ranking.source, ranking.stages["recovery"]
    if notes["degraded"]:
        return []
    if is_dream:
        return [{"collection": "dream:UID", "k": source.dream_pool_size, "exclude": []}]  # type: ignore[attr-defined]
    pools = {
        "session:SID": "session",
        "user:UID": "durable",
        "global": "global",
        "authored:variant": "authored",
        "elevated": "guidance",
    }
    found = [
        {
            "collection": collection,
            "k": getattr(source, f"{pool}_pool_size"),
            "exclude": list(shown) if pool == "session" else [],
        }
        for collection, pool in pools.items()
    ]
    tiers = {item.item_id: item.context_tier for item in context.items}
    chosen = [name for name in notes["injection_order"] if tiers[name] != "recovered"]
    authored = [name for name in chosen if tiers[name] in ("hard", "soft")]
    excluded = [*shown, *authored, *(name for name in chosen if name not in authored)]
    if notes["has_failed"]:
        found.append({"collection": "session_raw:SID", "k": fetch.session_k, "exclude": excluded})  # type: ignore[union-attr]
    if notes["is_elsewhere"]:
        found.append({"collection": "turns:UID", "k": fetch.user_k, "exclude": excluded})  # type: ignore[union-attr]
    return found


def scope_of(case: Mapping[str, Any]) -> str:
    return f"user:{case['user_id']}"
