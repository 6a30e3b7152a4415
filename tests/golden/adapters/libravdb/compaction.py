"""libravdb memory's compaction onto ours."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from lcm.clock import EPOCH, format_instant
from lcm.compaction.clustering.cluster_partition import partition
from lcm.compaction.clustering.cluster_summary import summary_record_id as id_of
from lcm.compaction.clustering.clustering import Clustering
from lcm.compaction.clustering.prior_context import made_before
from lcm.compaction.clustering.prior_context import prior_context as taken
from lcm.compaction.lockstep import in_lockstep
from lcm.compaction.progress import Progress
from lcm.compaction.recent_tail import Turn
from lcm.compaction.summarizer.t5 import _Window, _written
from lcm.compaction.summarizer.t5_decoding import Greedy, decode
from lcm.compaction.summarizer.t5_model import T5Model
from lcm.compaction.summary_quality import summary_quality as quality_of
from lcm.compaction.window import StoredWindow
from lcm.errors import ModelError
from lcm.protocols import Vectors, Work
from lcm.records import CompactionReport, Message, Shard, Summary, SummaryRequest, SummaryResult
from lcm.store.guidance import read_shards
from lcm.store.lineage import depth_first
from lcm.store.store import Store
from lcm.store.summaries import insert_summary
from lcm.token_estimator.utf16_units import Utf16Units
from tests.golden.components import component

NOW_MS = 1_900_000_000_000
TOKENS = Utf16Units()
PRIOR_ID = "__continuity_prior__"


@dataclass
class Listed:
    """The embeddings of a case; a text without one fails."""

    vectors: dict[str, Any]
    dim: int
    name: str = "listed"
    is_unit: bool = False
    """Rows as an embedder gives them; those of a case are not of unit length."""

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Sequence[str], kind: str) -> Vectors:
        missing = [text for text in texts if self.vectors.get(text) is None]
        if missing:
            raise ModelError(f"no embedding of {missing[0]!r}")
        rows: Vectors = np.array([self.vectors[text] for text in texts], np.float32).reshape(len(texts), self.dim)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.maximum(lengths, 1e-12)).astype(np.float32) if self.is_unit else rows


@dataclass
class Scripted:
    """The abstractive summarizer of a case: an output a call."""

    outputs: list[dict[str, Any]]
    calls: list[SummaryRequest] = field(default_factory=list)
    failures: int = 0

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: SummaryRequest) -> SummaryResult:
        self.calls.append(request)
        said = self.outputs.pop(0) if self.outputs else {"error": True}
        if said.get("error") or not said["text"]:
            self.failures += 1
            return SummaryResult("", 0.0, "onnx-t5", failure=ModelError("the model failed"))
        return SummaryResult(str(said["text"]), said["confidence"], "onnx-t5", "t5", tokens=int(said["token_count"]))


class Scored(StoredWindow):
    """A window whose turns carry the scores of the case."""

    scores: dict[str, float]

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        return {one: self.scores[one] for one in message_ids if one in self.scores}


def clustering(**changes: Any) -> Clustering:
    return replace(component("compaction=libravdb", "compaction", "compaction.rules=1.4.4"), **changes)  # type: ignore[no-any-return]


def embedder(case: dict[str, Any]) -> Listed:
    return Listed({each["text"]: each["vector"] for each in case["embeddings"]}, case["dims"])


def instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds(when: datetime | None) -> int:
    assert when is not None
    return (when - EPOCH) // timedelta(milliseconds=1)


def recorded_ts(record: dict[str, Any]) -> int:
    """A number, or a text of one; anything else is 0."""
    try:
        return int(record["metadata"].get("ts"))
    except (TypeError, ValueError):
        return 0


def eligible(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns in the order in which a conversation has them."""
    turns = [record for record in records if record["metadata"].get("type") not in ("summary", "guidance_shard")]
    return sorted(turns, key=lambda turn: (recorded_ts(turn), turn["id"]))


def chronological_clusters(case: dict[str, Any]) -> dict[str, Any]:
    ids = [record["id"] for record in eligible(case["records"])]
    size = case["target_size"] if case["target_size"] > 0 else clustering().target_cluster_size
    return {"eligible_ids": ids, "clusters": [[ids[i] for i in places] for places in partition(len(ids), size)]}


def sanitize(case: dict[str, Any]) -> dict[str, Any]:
    return {"text": clustering().sanitizer.sanitize(case["text"])}


def summary_record_id(case: dict[str, Any]) -> dict[str, Any]:
    return {"id": id_of(case["session_id"], case["source_ids"])}


def prior_context(case: dict[str, Any]) -> dict[str, Any]:
    compaction = clustering()
    limit = case["limit_tokens"] if case["limit_tokens"] > 0 else compaction.prior_context_tokens
    earlier = [prior_summary(one) for one in case["summaries"] if one["metadata"].get("type") == "summary"]
    begin = instant(case["cluster_start_ts"])
    found = taken(made_before(earlier, begin), limit, compaction.summary.counting.estimator)
    return {"summary_ids": list(found.summary_ids), "text": found.text, "tokens": found.tokens}


def prior_summary(record: dict[str, Any], conversation_id: str = "s1") -> Summary:
    return Summary(
        summary_id=record["id"],
        conversation_id=conversation_id,
        kind="leaf",
        depth=0,
        content=record["text"],
        token_count=int(record["metadata"].get("token_count") or 0),
        created_at=instant(recorded_ts(record)),
    )


def extractive_summary(case: dict[str, Any]) -> dict[str, Any]:
    options, given = case["options"], embedder(case)
    least = options.get("min_input_turns", 0)
    summarizer = replace(
        component("summarizer=centroid", "summarizer"), embedder=given, min_turns=least if least > 0 else 2
    )
    texts = [turn["text"] for turn in case["turns"]]
    request = SummaryRequest("\n".join(texts), 64, turns=tuple(texts), density=options.get("target_density"))
    [result] = summarizer.summarize([request], incidents=Counter())
    if result.failure is not None:
        return {"error": True}
    quality = quality_of(given.embed(texts, "document"), given.embed([result.text], "document")[0])
    return {
        "text": result.text,
        "source_ids": [case["turns"][i]["id"] for i in summarizer.chosen(given.embed(texts, ""), request.density)],
        "method": result.method,
        "token_count": result.tokens,
        "confidence": result.confidence,
        "preservation_align": quality.align,
        "preservation_cover": quality.cover,
    }


def summary_quality(case: dict[str, Any]) -> dict[str, Any]:
    given, said = embedder(case), case["summary"]
    compaction = clustering(embedder=given)
    confidence = compaction.summary.confidence
    texts = [turn["text"] for turn in case["turns"]]
    result = SummaryResult(said["text"], said["confidence"], said["method"])
    quality = confidence.quality(texts, result.text, Counter())
    is_lost = confidence.is_lost(result, quality)
    if is_lost:
        request = SummaryRequest("\n".join(texts), 64, turns=tuple(texts), density=compaction.first_density)
        [result] = replace(component("summarizer=centroid", "summarizer"), embedder=given).summarize(
            [request], incidents=Counter()
        )
        quality = confidence.quality(texts, result.text, Counter())
    assert quality is not None
    return {
        "align": quality.align,
        "cover": quality.cover,
        "conf_embed": quality.confidence,
        "conf_t5": min(1.0, max(0.0, said["confidence"])),
        "confidence": confidence.of(result, quality),
        "fell_back": is_lost,
        "method": result.method,
        "text": result.text,
    }


def tail_selection_compaction(case: dict[str, Any]) -> dict[str, Any]:
    turns = eligible(case["turns"])
    budget = case["tail_budget_tokens"] if case["tail_budget_tokens"] > 0 else clustering().tail_budget_tokens
    compaction = clustering(min_turns=max(0, case["min_turns"]), tail_budget_tokens=budget)
    tokens = compaction.summary.counting.turn_tokens([], [message_of(turn, "s1") for turn in turns])
    seen = [
        Turn(count, turn["metadata"].get("role", ""), turn["metadata"].get("continuity_bundle_id", ""))
        for count, turn in zip(tokens, turns, strict=True)
    ]
    chosen = compaction.tail.select(seen, compaction.tail_budget_tokens, rules=compaction.rules)
    ids = [turn["id"] for turn in turns]
    return {"older": ids[: chosen.recent], "base": ids[chosen.base :], "recent": ids[chosen.recent :]}


def expand_summary(case: dict[str, Any]) -> dict[str, Any]:
    """Messages, and the summaries that are too deep to be opened."""
    raw = {turn["id"] for turn in case["raw_turns"]}
    edges: dict[str, list[str]] = {}
    for edge in case["edges"]:
        if edge["child_type"] == "summary" or edge["child"] in raw:
            edges.setdefault(edge["parent"], []).append(edge["child"])
    depth = case["max_depth"] if case["max_depth"] > 0 else 3
    found = depth_first(case["summary_id"], lambda one: edges.get(one, []), depth)
    return {"ids": [one for one, steps in found if steps and (one in raw or steps == depth)]}


def t5_confidence(case: dict[str, Any]) -> dict[str, Any]:
    tokenizer = SimpleNamespace(decode=lambda ids, skip_special_tokens: "words" if ids else "")
    session = Logits(case)
    unused: Any = None
    ends = frozenset({case["eos"]})
    model = T5Model(unused, session, session, cast(Any, tokenizer), case["bos"], ends, 512, unused, 1, 0)
    encoded = np.zeros((1, 1), np.float32)
    search = Greedy(case["max_tokens"], model.end_ids)
    decode(model, [encoded], [search])
    written = _written(model, _Window([], case["max_tokens"], is_last=True), encoded, search.tokens)
    ids = [token for token in search.tokens if token not in model.end_ids]
    return {"token_ids": ids, "confidence": written.confidence}


class Logits:
    """The decoder of a case: logits by position, whatever stands before."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._case = case
        self._position = 0

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="logits")]

    def run(self, names: list[str] | None, feed: dict[str, Any]) -> list[Any]:
        if names is not None:  # all positions at once
            return [np.stack([self._row(place) for place in range(feed["input_ids"].shape[1])])[None]]
        row = self._row(self._position)
        self._position += 1
        return [row[None, None]]

    def _row(self, place: int) -> Any:
        row = np.full(self._case["vocab_size"], self._case["floor_logit"], np.float64)
        steps = self._case["steps"]
        for token, logit in (steps[place] if place < len(steps) else {}).items():
            row[int(token)] = logit
        return row


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
    progress = Progress(window, instant(NOW_MS), Counter())
    formed = compaction.clusters(window)
    sizes = {entry.item_id: len(cluster) for cluster in formed for entry in cluster}
    list(in_lockstep([one_pass(compaction, progress)], compaction.summarizer, incidents=Counter()))
    events = store.compactions().select("event", "detail").rows()
    details = [(event, json.loads(detail)) for event, detail in events if event in ("quality", "guidance")]
    last = details[-1][1].get("summary_id", "") if details else ""
    qualities = {detail["summary_id"]: detail for event, detail in details if event == "quality"}
    made = sorted(progress.made, key=lambda one: one.summary_id)
    confidences = [detail["confidence"] for _, detail in details]
    methods = {detail.get("method", "guidance_shard") for _, detail in details}
    with store.reading() as connection:
        shards = read_shards(connection)
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


def shard_row(shard: Shard, user_id: str | None) -> dict[str, Any]:
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
        "source_ts_min": milliseconds(summary.earliest_at),
        "source_ts_max": milliseconds(summary.latest_at),
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


def one_pass(compaction: Clustering, progress: Progress) -> Work:
    """What the original does in one call."""
    before = progress.totals.tokens
    yield from compaction.one_pass(progress)
    return CompactionReport(progress.window.conversation_id, bool(progress.made), "", before, progress.totals.tokens)


def message_of(turn: dict[str, Any], session_id: str) -> Message:
    said = {"stability_weight": 0, **turn["metadata"]}
    role = said.get("role", "system")
    return Message(turn["id"], role, turn["text"], session_id, instant(recorded_ts(turn)), envelope={"metadata": said})


def laid_out(case: dict[str, Any], turns: Sequence[dict[str, Any]]) -> tuple[Store, Scored]:
    """A conversation with earlier summaries before its turns."""
    session_id = case["session_id"]
    store = Store(opened_at=datetime(2030, 1, 1, tzinfo=UTC))
    store.append(session_id, [message_of(turn, session_id) for turn in turns], TOKENS)
    if not turns:
        store.append(session_id, [Message("none", "system", "", session_id, EPOCH)], TOKENS)
    conversation = store.conversation_row(session_id)
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
