"""libravdb memory's vectors of continuity and assembly onto our components."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, get_args

from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.context.assembly.continuity import Continuity, entry_of
from lcm.context.assembly.parts import MemoryText, Source, first_fit, longest_prefix, sections
from lcm.protocols.context import ContextRequest
from lcm.protocols.models import TokenEstimator
from lcm.records.context import ContextTier
from lcm.records.conversation import Message
from lcm.records.document import AuthoredNode, AuthoredTier
from lcm.retrieval.summary_expansion import ExpandableSummary, SummaryChild, SummaryExpansion
from tests.golden.components import component


@dataclass(frozen=True, slots=True)
class Told:
    """Counts some texts as it is told, the others as the host does."""

    host: TokenEstimator
    told: Mapping[str, int]

    @property
    def image_tokens(self) -> int | None:
        return self.host.image_tokens

    def count(self, texts: Sequence[str]) -> list[int]:
        counts = self.host.count(texts)
        return [self.told.get(text, count) for text, count in zip(texts, counts, strict=True)]


def tail_selection_host(case: dict[str, Any]) -> dict[str, Any]:
    given = case["turns"]
    turns = [Turn(turn["tokens"], turn.get("role", ""), turn.get("bundle", "")) for turn in given]
    if not case["use_bundles"]:
        turns = [Turn(turn.tokens, "") for turn in turns]
    tail = original().tail
    if case["min_turns"] is not None:
        tail = _with_min_turns(tail, case["min_turns"])
    budget = case["tail_budget_tokens"]
    choice = tail.select(turns, tail.budget_tokens if budget is None else budget, rules="1.4.4")
    ids = [turn["id"] for turn in given]
    return {
        "older": ids[: choice.recent],
        "base": ids[choice.base :],
        "recent": ids[choice.recent :],
        "base_tokens": sum(turn.tokens for turn in turns[choice.base :]),
        "recent_tokens": sum(turn.tokens for turn in turns[choice.recent :]),
    }


def budget_fit(case: dict[str, Any]) -> dict[str, Any]:
    costs = original().token_estimator.count([item["text"] for item in case["items"]])
    ids = [item["id"] for item in case["items"]]
    return {
        "costs": costs,
        "prefix": ids[: longest_prefix(costs, case["budget"])],
        "first_fit": [ids[place] for place in first_fit(costs, case["budget"])],
    }


def continuity_partition(case: dict[str, Any]) -> dict[str, Any]:
    collections = case["collections"]
    turns = collections["session_turns"]
    messages = [message_of(turn) for turn in turns]
    told = {
        entry_of(message, source): turn["metadata"]["token_estimate"]
        for message, turn in zip(messages, turns, strict=True)
        for source in get_args(Source)
    }
    authored = authored_of(collections)
    assembly = configured(case["config"])
    assembly = replace(assembly, token_estimator=Told(assembly.token_estimator, told))
    [context] = assembly.assemble(messages, [ContextRequest(case["token_budget"], "hello")], authored)
    notes = context.notes
    order = list(notes["injection_order"])
    ids = {tier: [item.item_id for item in context.items if item.context_tier == tier] for tier in ("hard", "soft")}
    turn_ids = [item.item_id for item in context.items if item.in_tail]
    base = len(turn_ids) - notes["base_turns"]
    return {
        "memory_budget": notes["memory_tokens"],
        "degraded": bool(notes["degraded"]),
        "hard_ids": ids["hard"],
        "tail_base_ids": turn_ids[base:],
        "soft_ids": ids["soft"],
        "tail_extension_ids": turn_ids[:base],
        "tokens": {
            "hard": notes["hard_tokens"],
            "tail_base": notes["base_tokens"],
            "soft": notes["soft_tokens"],
            "tail_extension": notes["tail_tokens"] - notes["base_tokens"],
        },
        "retrieval_budget": None if notes["degraded"] else notes["left_tokens"],
        "injection_order": order,
    }


def injected_content(case: dict[str, Any]) -> dict[str, Any]:
    messages = [_remembered(item, _message_tier(item["metadata"])) for item in case["items"]]
    shown = [_remembered(item, tier) for item in case["items"] for tier in _header_tiers(item["metadata"])]
    return {
        "message_contents": [one.as_message for one in messages],
        "header_sections": [
            {"section": section, "entries": [_entry(one) for one in lines]}
            for section, lines in sections(shown).items()
        ],
    }


def _entry(line: str) -> dict[str, str]:
    label, _, body = line.removeprefix("[").removesuffix("\n").partition("] ")
    return {"label": label, "body": body}


def summary_expansion(case: dict[str, Any]) -> dict[str, Any]:
    names = {"confidence_threshold": "confidence_threshold", "max_depth": "depth", "token_budget": "token_budget"}
    options = {names[key]: value for key, value in case["options"].items() if key in names}
    if "penalty_factor" in case["options"]:
        options["penalty_factor"] = max(0.0, case["options"]["penalty_factor"])  # below 0 every score is 0
    summaries = [
        ExpandableSummary(item["id"], metadata.get("confidence", 0.0), metadata.get("expansion_depth", 0))
        for item in case["items"]
        if (metadata := item["metadata"]).get("type") == "summary"
    ]
    calls = []

    def children(summary_id: str, depth: int) -> list[SummaryChild]:
        calls.append({"summary_id": summary_id, "max_depth": depth})
        return [
            SummaryChild(item["id"], item.get("final_score", item["score"]), item["metadata"].get("token_estimate", 0))
            for item in case["children"].get(summary_id, [])
        ]

    expanded = SummaryExpansion(**options).expand(summaries, children)
    return {
        "calls": calls,
        "expanded": [
            {"id": one.item_id, "final_score": one.score, "parent": one.parent_id, "depth": one.depth}
            for one in expanded
        ],
    }


def original() -> Continuity:
    made: Continuity = component("assembly=libravdb", "assembly", "assembly.rules=1.4.4")
    return replace(
        made,
        token_estimator=component("token_estimator=script_chars", "token_estimator"),
        recovery=component("recovery=libravdb", "recovery"),
    )


def configured(config: Mapping[str, Any]) -> Continuity:
    """The original's assembly under its own keys."""
    made = original()
    shares, tail = made.shares, made.tail
    if config.get("authored_hard_budget_fraction", 0) > 0:
        shares = replace(shares, hard_fraction=config["authored_hard_budget_fraction"])
    if "authored_soft_budget_fraction" in config:
        shares = replace(shares, soft_fraction=config["authored_soft_budget_fraction"])
    if "elevated_guidance_budget_fraction" in config:
        shares = replace(shares, guidance_fraction=config["elevated_guidance_budget_fraction"])
    if "continuity_min_turns" in config:
        tail = _with_min_turns(tail, config["continuity_min_turns"])
    if "continuity_tail_budget_tokens" in config:
        tail = replace(tail, budget_tokens=config["continuity_tail_budget_tokens"])
    fraction = config.get("token_budget_fraction", made.token_budget_fraction)
    return replace(made, shares=shares, tail=tail, token_budget_fraction=fraction)


def message_of(turn: Mapping[str, Any]) -> Message:
    metadata = turn["metadata"]
    native = {key: metadata[key] for key in ("continuity_bundle_id",) if key in metadata}
    return Message(
        turn["id"],
        metadata.get("role", ""),
        turn["text"],
        metadata.get("session_id", ""),
        created_at=instant(metadata["ts"]),
        envelope={"native": native} if native else {},
    )


def authored_of(collections: Mapping[str, Any]) -> list[AuthoredNode]:
    """The authored blocks in authored order."""
    tiers: tuple[AuthoredTier, ...] = ("hard", "soft", "variant")
    return [
        node_of(item, tier)
        for tier in tiers
        for item in sorted(collections.get(f"authored_{tier}", []), key=_authored_order)
    ]


def node_of(item: Mapping[str, Any], tier: AuthoredTier) -> AuthoredNode:
    metadata = item["metadata"]
    return AuthoredNode(
        item["id"],
        metadata["source_doc"],
        tier,
        "Paragraph",
        item["text"],
        metadata["position"],
        metadata["ordinal"],
        metadata.get("token_estimate", 0),
        hop_targets=tuple(metadata.get("hop_targets", ())),
    )


def instant(ts_ms: int) -> datetime:
    return datetime.fromtimestamp(ts_ms / 1000, UTC)


def _authored_order(item: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata = item["metadata"]
    return metadata["source_doc"], metadata["position"], metadata["ordinal"], item["id"]


def _with_min_turns(tail: RecentTail, min_turns: float) -> RecentTail:
    return replace(tail, min_turns=max(1, int(min_turns)) if min_turns > 0 else 0)


def _message_tier(metadata: Mapping[str, Any]) -> ContextTier:
    """By which right a message of its own is worded; the original's flags may hold side by side."""
    tiers = _header_tiers(metadata)
    return "tail" if metadata.get("continuity_tail") and tiers[0] == "guidance" else tiers[0]


def _header_tiers(metadata: Mapping[str, Any]) -> list[ContextTier]:
    """In which sections it stands: what is authored and of the tail stands in both."""
    tiers: list[ContextTier] = []
    if metadata.get("authored") and metadata.get("tier") in (1, 2):
        tiers.append("hard" if metadata["tier"] == 1 else "soft")
    if metadata.get("elevated_guidance"):
        tiers.append("guidance")
    elif metadata.get("continuity_tail"):
        tiers.append("tail")
    return tiers or ["recalled"]


def _remembered(item: Mapping[str, Any], context_tier: ContextTier) -> MemoryText:
    metadata = item["metadata"]
    role = metadata.get("role") if metadata.get("role") in ("user", "assistant") else ""
    if not role and context_tier in ("recalled", "guidance") and metadata.get("collection", "").startswith("user:"):
        role = "user"
    said_at = instant(metadata["ts"]) if "ts" in metadata else None
    return MemoryText(context_tier, item["text"], role or "", said_at)
