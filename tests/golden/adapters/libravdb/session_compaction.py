"""libravdb memory's compaction of a whole session, against ours."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lcm.clock import EPOCH, format_instant
from lcm.compaction.clustering import Clustering
from lcm.compaction.work import CompactionProgress, in_lockstep
from lcm.protocols.compaction import Work
from lcm.records.conversation import Message
from lcm.records.summary import CompactionReport, GuidanceShard, Summary, SummaryRequest
from lcm.store.conversations import conversation_row
from lcm.store.documents import read_undocumented_shards
from lcm.store.store import Store
from lcm.store.summaries import insert_summary
from tests.golden.adapters.libravdb.compaction import (
    NOW_MS,
    PRIOR_ID,
    TOKENS,
    Listed,
    Scored,
    Scripted,
    clustering,
    eligible,
    embedder,
    message_of,
    prior_summary,
)
from tests.golden.components import component, instant, milliseconds


def compact_session(case: dict[str, Any]) -> dict[str, Any]:
    return compacted(case)[0]


def failures_met(case: dict[str, Any]) -> int:
    """How often the model of a case fails where it is asked."""
    return compacted(case)[1]


def compacted(case: dict[str, Any]) -> tuple[dict[str, Any], int]:
    session_id, given = case["session_id"], embedder(case)
    scripted, compaction = arranged(case, given)
    turns = eligible(case["turns"])
    store, window = laid_out(case, turns)
    progress = CompactionProgress(window, instant(NOW_MS), Counter())
    formed = compaction.clusters(window)
    sizes = {entry.item_id: len(cluster) for cluster in formed for entry in cluster}
    list(in_lockstep([one_pass(compaction, progress)], compaction.summarizer, incidents=Counter()))
    events = store.compactions().select("event", "detail").rows()
    details = [(event, json.loads(detail)) for event, detail in events if event in ("quality", "guidance")]
    last = details[-1][1].get("summary_id", "") if details else ""
    qualities = {detail["summary_id"]: detail for event, detail in details if event == "quality"}
    made = sorted(progress.summaries, key=lambda one: one.summary_id)
    confidences = [detail["confidence"] for _, detail in details]
    methods = {detail.get("method", "guidance_shard") for _, detail in details}
    with store.reading() as connection:
        shards = read_undocumented_shards(connection)
    users = {turn["id"]: turn["metadata"].get("user_id") for turn in turns}
    covered = sum(sizes[(detail["kept"] or list(summary_sources(made, detail)))[0]] for _, detail in details)
    calls = [call_of(call, turns, compaction) for call in scripted.calls]
    found = {
        **({"abstractive_calls": calls} if case["abstractive"] else {}),
        "active_turns_after": len(store.messages(session_id)) if turns else 0,
        "raw_turns_after": len(store.messages(session_id)) if turns else 0,
        "compaction_generation": len(details),
        "last_summary_id": last,
        "edges": [
            {"parent": one.summary_id, "child": child, "order": order}
            for one in made
            for order, child in enumerate(one.source_ids)
        ],
        "shards": sorted(
            (shard_row(shard, users[shard.message_id]) for shard in shards),
            key=lambda row: (row["collection"], row["id"]),
        ),
        "summaries": [summary_row(one, qualities[one.summary_id]) for one in made],
        "result": {
            "did_compact": bool(details),
            "clusters_formed": len(formed),
            "clusters_declined": len(formed) - len(details),
            "turns_covered": covered,
            "summary_method": "" if not methods else methods.pop() if len(methods) == 1 else "mixed",
            "mean_confidence": sum(confidences) / len(confidences) if confidences else 0,
        },
    }
    return found, scripted.failures


def shard_row(shard: GuidanceShard, user_id: str | None) -> dict[str, Any]:
    return {
        "id": f"guidance:{shard.conversation_id}:{shard.message_id}",
        "collection": f"elevated:user:{user_id}" if user_id else f"elevated:session:{shard.conversation_id}",
        "text": shard.text,
        "authority": shard.stability,
        "token_estimate": shard.tokens,
    }


def summary_sources(made: Sequence[Summary], detail: dict[str, Any]) -> tuple[str, ...]:
    return next(one.source_ids for one in made if one.summary_id == detail["summary_id"])


def summary_row(summary: Summary, detail: dict[str, Any]) -> dict[str, Any]:
    row = {
        "id": summary.summary_id,
        "text": summary.content,
        "method": summary.method,
        "token_count": detail["said_tokens"],
        "source_ids": list(summary.source_ids),
        "source_ts_min": milliseconds(summary.earliest_at or EPOCH),
        "source_ts_max": milliseconds(summary.latest_at or EPOCH),
        "confidence": summary.confidence,
        "decay_rate": 1 - summary.confidence,
        "confidence_t5": detail["backend_confidence"],
        "confidence_embed": detail["embedding_confidence"],
        "embed_align": detail["align"],
        "embed_cover": detail["cover"],
    }
    if detail["support_summary_ids"]:
        row["continuity_support_summary_ids"] = detail["support_summary_ids"]
        row["continuity_support_tokens"] = detail["support_tokens"]
    return row


def call_of(call: SummaryRequest, turns: Sequence[dict[str, Any]], compaction: Clustering) -> dict[str, Any]:
    ids = {compaction.sanitizer.sanitize(turn["text"]): turn["id"] for turn in turns}
    usual = component("summarizer=routed", "summarizer").extractive
    return {
        "max_output_tokens": call.target_tokens,
        "min_input_turns": usual.min_turns,
        "target_density": 0 if call.density == usual.density else call.density,
        "turn_ids": [ids.get(text, PRIOR_ID) for text in call.turns],
    }


def arranged(case: dict[str, Any], given: Listed) -> tuple[Scripted, Clustering]:
    abstractive = case["abstractive"] or {"ready": False, "outputs": []}
    scripted = Scripted(list(abstractive["outputs"]))
    routed = component("summarizer=routed", "summarizer")
    routed = replace(
        routed,
        extractive=replace(routed.extractive, embedder=given),
        abstractive=scripted if abstractive["ready"] else None,
    )
    usual, asked = clustering(), case["continuity"]
    compaction = replace(
        usual,
        summarizer=routed,
        guidance=replace(component("guidance=libravdb", "guidance"), booster_embedder=replace(given, is_unit=True)),
        embedder=given,
        target_cluster_size=case["target_size"] if case["target_size"] > 0 else usual.target_cluster_size,
        min_turns=max(0, asked["min_turns"]),
        tail_budget_tokens=asked["tail_budget_tokens"] if asked["tail_budget_tokens"] > 0 else usual.tail_budget_tokens,
        prior_context_tokens=asked["prior_context_tokens"]
        if asked["prior_context_tokens"] > 0
        else usual.prior_context_tokens,
    )
    return scripted, compaction


def one_pass(compaction: Clustering, progress: CompactionProgress) -> Work:
    """What the original does in one call."""
    before = progress.totals.tokens
    yield from compaction.one_pass(progress)
    return CompactionReport(
        progress.window.conversation_id, bool(progress.summaries), "", before, progress.totals.tokens
    )


def laid_out(case: dict[str, Any], turns: Sequence[dict[str, Any]]) -> tuple[Store, Scored]:
    """A conversation with earlier summaries before its turns."""
    session_id = case["session_id"]
    store = Store(opened_at=datetime(2030, 1, 1, tzinfo=UTC))
    store.append(session_id, [message_of(turn, session_id) for turn in turns], TOKENS)
    if not turns:
        store.append(session_id, [Message("none", "system", "", session_id, EPOCH)], TOKENS)
    conversation = conversation_row(store._connection, session_id)
    with store.writing() as connection:
        connection.execute("UPDATE context_items SET ordinal = ordinal + 1000000")
        for place, record in enumerate(case["prior_summaries"]):
            summary = prior_summary(record, session_id)
            insert_summary(connection, conversation, summary)
            connection.execute(
                """
                INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, created_at)
                VALUES (?, ?, 'summary', ?, ?)
                """,
                (conversation, place, summary.summary_id, format_instant(EPOCH)),
            )
    window = Scored(store, session_id)
    window.scores = {
        turn["id"]: turn["metadata"]["gating_score"] for turn in turns if "gating_score" in turn["metadata"]
    }
    return store, window
