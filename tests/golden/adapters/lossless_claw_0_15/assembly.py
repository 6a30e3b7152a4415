"""Vectors of assembly of lossless-claw 0.15.3 onto our components."""

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from lcm.context.assembly.lossless import Lossless, RelevanceIndex, fresh_tail, names_in, quoted
from lcm.context.assembly.shown_items import ShownItems
from lcm.protocols.context import ContextRequest
from lcm.records.conversation import LargeFile, Message
from lcm.records.summary import Summary
from tests.golden.adapters.lossless_claw import assembly as older
from tests.golden.components import component


def assembly(case: dict[str, Any]) -> dict[str, Any]:
    items = [_item_of(spec, place) for place, spec in enumerate(case["layout"])]
    params = case["params"]
    used = _assembler(params)
    ask = ContextRequest(params["token_budget"], params.get("prompt") or "")
    [context] = replace(used, clamp=None).assemble(items, [ask])
    shown = ShownItems(items, used.token_estimator, ZoneInfo("UTC"), used.rules, used.large_results)
    tail = fresh_tail(shown, used.fresh_tail_count, used.fresh_tail_max_tokens, used.rules)
    resolved = [shown[place].tokens for place in range(len(items)) if shown[place].messages]
    if used.large_results == "in_tail":
        shown.refer_before(tail.start)
    summaries = sum(isinstance(item, Summary) for item in items)
    evictable = [shown.words(place) for place in range(tail.start)]
    by_prompt = used.eviction == "relevance" and RelevanceIndex(evictable, used.rules).scores(ask.prompt) is not None
    before = range(tail.start if used.large_results == "in_tail" else 0)
    return {
        "item_tokens": resolved,
        "assembler": {
            "estimated_tokens": context.tokens,
            "selection_mode": "full-fit" if not context.evicted else "prompt-aware" if by_prompt else "chronological",
            "tail_ordinal": tail.start if tail.order else None,
            "tail_tokens": tail.tokens,
            "remaining_budget": max(0, ask.budget_tokens - tail.tokens),
            "output_ordinals": older._ordinals(context, shown),
            "messages": [older._with_the_notice(message) for message in context.messages],
            "stats": {
                "raw_message_count": len(resolved) - summaries,
                "summary_count": summaries,
                "total_context_items": len(items),
            },
            "stubbed": sum(bool(items[place].files) for place in before if isinstance(items[place], Message)),
        },
        "clamp": _clamp(used, [older._with_the_notice(message) for message in context.messages], ask.budget_tokens),
    }


def prompt_recall(case: dict[str, Any]) -> dict[str, Any]:
    preset: Lossless = component("system=lossless_claw_0_15", "assembly")
    return {
        "identifiers": names_in(case["prompt"], preset.looked_up_names),
        "snippet": quoted(case["content"], case["identifier"]),
    }


def _clamp(used: Lossless, messages: list[dict[str, Any]], budget_tokens: int) -> dict[str, Any]:
    assert used.clamp is not None
    cut = used.clamp.cut(messages, budget_tokens, used.token_estimator)
    apart = replace(used.clamp, keeps_answers=True).cut(messages, budget_tokens, used.token_estimator)
    return {
        "serialized_before": cut.tokens_before,
        "clamped": cut.is_cut,
        "kept": list(cut.kept),
        "serialized": cut.tokens,
        "over_budget": cut.is_cut and cut.tokens > max(1, int(budget_tokens * used.clamp.fraction)),
        "kept_when_tail_preserved": list(apart.kept),
    }


def _assembler(params: dict[str, Any]) -> Lossless:
    """The assembler beneath the engine, which names a count of its own and evicts by the prompt unless told not to."""
    preset: Lossless = component("system=lossless_claw_0_15", "assembly")
    return replace(
        preset,
        fresh_tail_count=params.get("fresh_tail_count", older.UNSET_TAIL),
        fresh_tail_max_tokens=params.get("fresh_tail_max_tokens"),
        eviction="relevance" if params.get("prompt_aware_eviction", True) else "chronological",
        large_results="in_tail" if params.get("stub_large_tool_payloads") else "whole",
        default_budget_tokens=None,
    )


def _item_of(spec: dict[str, Any], place: int) -> Message | Summary:
    if spec["type"] == "summary":
        return older.item_of({"earliest_at": None, "latest_at": None, "sources": [], **spec}, place)
    item = older.recorded(spec["message"], place)
    if "large_file" not in spec:
        return item
    large = spec["large_file"]
    file = LargeFile(large["id"], 0, 0, None, None, large["byte_size"], large.get("summary", ""))
    return replace(item, files=(file,))
