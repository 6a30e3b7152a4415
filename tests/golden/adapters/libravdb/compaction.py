"""libravdb memory's compaction onto ours."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from lcm.compaction.clustering import Clustering, partition
from lcm.compaction.clustering import summary_record_id as id_of
from lcm.compaction.quality import summary_quality as quality_of
from lcm.compaction.recent_tail import Turn
from lcm.compaction.summarizer.t5 import T5Model, Window
from lcm.compaction.window import StoredWindow
from lcm.errors import ModelError
from lcm.protocols.models import Vectors
from lcm.records.conversation import Message
from lcm.records.summary import Summary, SummaryRequest, SummaryResult
from lcm.store.summaries import depth_first
from lcm.token_estimator import CodePoints, Utf16Units
from tests.golden.components import component, instant

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
    before = instant(case["cluster_start_ts"])
    made = sorted((one.created_at, one.summary_id, one.token_count) for one in earlier if one.created_at < before)
    by_id = {one.summary_id: one for one in earlier}
    window = SimpleNamespace(summaries=lambda ids: [by_id[one] for one in ids])
    compaction = replace(compaction, prior_context_tokens=limit)
    found = compaction.prior_context(cast(Any, window), [(name, tokens) for _, name, tokens in reversed(made)])
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
    texts = [turn["text"] for turn in case["turns"]]
    result = SummaryResult(said["text"], said["confidence"], said["method"])
    quality = compaction.quality(texts, result, Counter())
    is_lost = compaction.is_lost(result, quality)
    if is_lost:
        request = SummaryRequest("\n".join(texts), 64, turns=tuple(texts), density=compaction.first_density)
        [result] = replace(component("summarizer=centroid", "summarizer"), embedder=given).summarize(
            [request], incidents=Counter()
        )
        quality = compaction.quality(texts, result, Counter())
    assert quality is not None
    return {
        "align": quality.align,
        "cover": quality.cover,
        "conf_embed": quality.confidence,
        "conf_t5": min(1.0, max(0.0, said["confidence"])),
        "confidence": compaction.confidence(result, quality),
        "fell_back": is_lost,
        "method": result.method,
        "text": result.text,
    }


def tail_selection_compaction(case: dict[str, Any]) -> dict[str, Any]:
    turns = eligible(case["turns"])
    budget = case["tail_budget_tokens"] if case["tail_budget_tokens"] > 0 else clustering().tail_budget_tokens
    compaction = clustering(min_turns=max(0, case["min_turns"]), tail_budget_tokens=budget)
    tokens = CodePoints(empty_tokens=1).count([turn["text"] for turn in turns])
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
    with ThreadPoolExecutor(1) as threads:
        model = T5Model(
            model=by_position(case),
            tokenizer=cast(Any, tokenizer),
            start_id=case["bos"],
            pad_id=0,
            end_ids=frozenset({case["eos"]}),
            max_input_tokens=512,
            threads=threads,
            thread_count=1,
        )
        [written] = model.write([Window([case["eos"]], case["max_tokens"])], 1, 1.0, 1)
    return {"token_ids": written.ids, "confidence": written.confidence}


def by_position(case: dict[str, Any]) -> Any:
    """A model whose logits are those of a case, by position, whatever stands before."""
    import torch
    from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

    def row(place: int) -> Any:
        logits = torch.full((case["vocab_size"],), case["floor_logit"], dtype=torch.float64)
        for token, logit in (case["steps"][place] if place < len(case["steps"]) else {}).items():
            logits[int(token)] = logit
        return logits

    class ByPosition(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
        main_input_name = "input_ids"

        def __init__(self, config: PretrainedConfig) -> None:
            super().__init__(config)
            self.anchor = torch.nn.Parameter(torch.zeros(1))  # a model without numbers is on no device

        def get_encoder(self) -> Any:
            return lambda input_ids, attention_mask: BaseModelOutput(torch.zeros((1, 1, 1)))

        def forward(self, decoder_input_ids: Any, encoder_outputs: Any = None, **_: Any) -> Any:
            return Seq2SeqLMOutput(logits=torch.stack([row(i) for i in range(decoder_input_ids.shape[1])])[None])

    return ByPosition(PretrainedConfig(is_encoder_decoder=True, use_cache=False))


def message_of(turn: dict[str, Any], session_id: str) -> Message:
    said = {"stability_weight": 0, **turn["metadata"]}
    role = said.get("role", "system")
    return Message(turn["id"], role, turn["text"], session_id, instant(recorded_ts(turn)), envelope={"metadata": said})
