"""lossless-claw 0.15's compaction onto ours."""

import re
from collections import Counter
from typing import Any

from lcm.compaction.lossless.lossless import Lossless, decide
from lcm.compaction.lossless.modes import Modes
from lcm.compaction.lossless.planning import leaf_chunk, leaf_trigger, threshold_trigger
from lcm.compaction.progress import CompactionProgress
from tests.golden.adapters.lossless_claw.compaction import drive, laid_out, result_of
from tests.golden.adapters.lossless_claw.compaction import outcome as older_outcome
from tests.golden.components import fields_of
from tests.lcm.compaction.contexts import NOW

PRESET = "lossless_claw_0_15"


def leaf_chunk_selection(case: dict[str, Any]) -> dict[str, Any]:
    overrides = case["overrides"]
    _, modes, progress = called(case, overrides)
    totals, tail = modes.passes.weighed(progress), modes.tail.start(progress.window)
    chunk = leaf_chunk(totals, modes.limits, tail, 1 + overrides.get("after_ordinal", -1))
    trigger = leaf_trigger(totals, modes.limits, tail)
    return {
        "ordinals": [] if chunk is None else list(range(chunk.start, chunk.stop)),
        "tail_ordinal": tail if tail < len(totals) else None,
        "raw_tokens_outside_tail": trigger.tokens,
        "threshold": trigger.threshold,
    }


def trigger_evaluation(case: dict[str, Any]) -> dict[str, Any]:
    compaction, modes, progress = called(case, case)
    totals, live = modes.passes.weighed(progress), case.get("observed_token_count")
    over = threshold_trigger(totals, modes.limits, live)
    raw = leaf_trigger(totals, modes.limits, modes.tail.start(progress.window)).tokens
    leaf = leaf_trigger(totals, modes.limits, compaction.modes.tail.start(progress.window))
    seen = {"observed_tokens": int(live or 0), "raw_tokens_outside_tail": raw, "projected_tokens": over.tokens}
    return {
        "evaluate": {
            **fields_of(over, "should_compact reason current_tokens=tokens threshold"),
            "stored_tokens": totals.tokens,
            **(seen if live is not None and live > 0 else {}),
        },
        "leaf_trigger": fields_of(leaf, "should_compact raw_tokens_outside_tail=tokens threshold"),
    }


def full_sweep(case: dict[str, Any]) -> dict[str, Any]:
    params = case["params"]
    compaction, modes, progress = called(case, params)
    before = progress.window.tokens
    how = {"is_forced": bool(params.get("force")), "is_hard": bool(params.get("hard_trigger"))}
    drive(modes.sweep(progress, **how, stop_at_tokens=params.get("stop_at_tokens")), compaction)
    result = result_of(progress, before) | ({"stopped_at_budget": True} if progress.is_capped else {})
    return {"result": result, **outcome(compaction, progress.window, case)}


def compact_until_under(case: dict[str, Any]) -> dict[str, Any]:
    params = case["params"]
    compaction, modes, progress = called(case, {})
    live = params.get("current_tokens")
    before = threshold_trigger(progress.totals, modes.limits, live).tokens
    is_under = drive(modes.until_under(progress, params.get("target_tokens"), live), compaction)
    after = progress.window.tokens if progress.rounds else before
    result = {"success": is_under, "rounds": progress.rounds, "final_tokens": after}
    failed = {"auth_failure": True} if progress.has_failed_auth else {}
    return {"result": result | failed, **outcome(compaction, progress.window, case)}


def compact_decision(case: dict[str, Any]) -> dict[str, Any]:
    params = case["params"]
    config = {re.sub("[A-Z]", lambda one: f"_{one[0].lower()}", key): value for key, value in case["plugin"].items()}
    compaction, modes, progress = called({**case, "config": config}, {})
    live = None if params.get("host_owns_prompt") else params.get("current_token_count")
    decision = drive(
        decide(
            modes,
            progress,
            to_threshold=params.get("compaction_target") == "threshold",
            is_forced=bool(params.get("force")),
            is_manual=bool(params.get("manual")),
            live_tokens=live,
        ),
        compaction,
    )
    told = outcome(compaction, progress.window, case)
    result: dict[str, Any] = {"tokens_before": decision.tokens_before}
    if decision.reason != "below threshold":
        details = fields_of(decision, "rounds target_tokens")
        if decision.is_projected:
            details |= fields_of(
                decision,
                "observed_overhead_tokens=overhead_tokens projected_tokens_after=projected_tokens "
                "projected_tokens_before=tokens_before raw_tokens_outside_tail=raw_tokens",
            )
        result |= {"tokens_after": decision.tokens_after, "details": details}
    return {
        "result": {**fields_of(decision, "ok=is_ok compacted=is_compacted reason"), "result": result},
        "summaries": [{name: one[name] for name in ("label", "depth", "token_count")} for one in told["summaries"]],
        **{name: told[name] for name in ("context_items", "context_tokens")},
        "calls": len(told["summarizer_calls"]),
    }


def outcome(compaction: Lossless, window: Any, case: dict[str, Any]) -> dict[str, Any]:
    """These vectors tell no files of summaries."""
    told = older_outcome(compaction, window, case)
    for summary in told["summaries"]:
        del summary["file_ids"]
    return told


def called(case: dict[str, Any], params: dict[str, Any]) -> tuple[Lossless, Modes, CompactionProgress]:
    """The preset with a case's settings, its modes as the call wants them, and a run."""
    compaction, window = laid_out(case, PRESET)
    names = ("context_threshold", "fresh_tail_count", "leaf_chunk_tokens")
    given = {name: params[name] for name in names if params.get(name) is not None}
    if not 0 <= given.get("context_threshold", 0) <= 1:  # the plugin takes none that is no share
        del given["context_threshold"]
    modes = compaction.called(**given).modes
    return compaction, modes, CompactionProgress(window, NOW, Counter())
