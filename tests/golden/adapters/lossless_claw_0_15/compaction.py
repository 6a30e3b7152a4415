"""lossless-claw 0.15's compaction onto ours."""

import re
from typing import Any

from lcm.compaction.lossless.folding import Folding
from lcm.compaction.lossless.lossless import Decision, decide
from lcm.compaction.lossless.planning import fresh_tail, leaf_chunk, raw_tokens
from tests.golden.adapters.lossless_claw.compaction import begun, drive, evaluated, leaf_due, result_of, until_under
from tests.golden.adapters.lossless_claw.compaction import outcome as older_outcome
from tests.golden.components import fields_of

PRESET = "lossless_claw_0_15"


def leaf_chunk_selection(case: dict[str, Any]) -> dict[str, Any]:
    overrides = case["overrides"]
    folding = called(case, overrides)
    totals, tail = folding.totals, folding.tail
    chunk = leaf_chunk(totals, folding.settings, tail, 1 + overrides.get("after_ordinal", -1))
    return {
        "ordinals": [] if chunk is None else list(range(chunk.start, chunk.stop)),
        "tail_ordinal": tail if tail < len(totals) else None,
        "raw_tokens_outside_tail": raw_tokens(totals, tail),
        "threshold": folding.settings.leaf_chunk_tokens,
    }


def trigger_evaluation(case: dict[str, Any]) -> dict[str, Any]:
    folding, live = called(case, case), case.get("observed_token_count")
    assert folding.configured is not None
    counted, totals = folding.tokens(live), folding.totals
    raw = raw_tokens(totals, fresh_tail(folding.configured, folding.window))
    seen = {
        "observed_tokens": int(live or 0),
        "raw_tokens_outside_tail": folding.raw_tokens,
        "projected_tokens": counted,
    }
    return {
        "evaluate": {
            **evaluated(counted, folding.settings),
            "stored_tokens": totals.tokens,
            **(seen if live is not None and live > 0 else {}),
        },
        "leaf_trigger": leaf_due(raw, folding.settings),
    }


def full_sweep(case: dict[str, Any]) -> dict[str, Any]:
    params = case["params"]
    folding = called(case, params)
    before = folding.totals.tokens
    how = {"is_forced": bool(params.get("force")), "is_hard": bool(params.get("hard_trigger"))}
    drive(folding.sweep(**how, stop_at_tokens=params.get("stop_at_tokens")), folding.settings)
    result = result_of(folding, before) | ({"stopped_at_budget": True} if folding.is_capped else {})
    return {"result": result, **outcome(folding, case)}


def compact_until_under(case: dict[str, Any]) -> dict[str, Any]:
    return without_files(until_under(called(case, {}), case))


def compact_decision(case: dict[str, Any]) -> dict[str, Any]:
    params = case["params"]
    config = {re.sub("[A-Z]", lambda one: f"_{one[0].lower()}", key): value for key, value in case["plugin"].items()}
    folding = called({**case, "config": config}, {})
    live = None if params.get("host_owns_prompt") else params.get("current_token_count")
    to_threshold = params.get("compaction_target") == "threshold"
    before, raw = folding.tokens(live), folding.raw_tokens
    decision = decided(
        folding,
        to_threshold=to_threshold,
        is_forced=bool(params.get("force")),
        is_manual=bool(params.get("manual")),
        live_tokens=live,
    )
    told, after = outcome(folding, case), folding.totals.tokens
    result: dict[str, Any] = {"tokens_before": before}
    if decision.reason != "below threshold":
        details = fields_of(decision, "rounds target_tokens")
        if decision.is_projected:
            details |= {
                "observed_overhead_tokens": decision.overhead_tokens,
                "projected_tokens_after": after + decision.overhead_tokens,
                "projected_tokens_before": before,
                "raw_tokens_outside_tail": raw,
            }
        result |= {"tokens_after": after, "details": details}
    return {
        "result": {
            "ok": decision.reason in ("below threshold", "already under target", "compacted"),
            "compacted": decision.rounds > 0,
            "reason": decision.reason,
            "result": result,
        },
        "summaries": [{name: one[name] for name in ("label", "depth", "token_count")} for one in told["summaries"]],
        **{name: told[name] for name in ("context_items", "context_tokens")},
        "calls": len(told["summarizer_calls"]),
    }


def decided(
    folding: Folding, *, to_threshold: bool, is_forced: bool, is_manual: bool, live_tokens: float | None
) -> Decision:
    """What a call decides; one whose target is the budget sweeps until it is under it."""
    budget = folding.settings.budget
    if is_manual or to_threshold or not (is_forced or folding.is_above(live_tokens)):
        how = {"to_threshold": to_threshold, "is_manual": is_manual, "is_forced": is_forced}
        return drive(decide(folding, **how, live_tokens=live_tokens), folding.settings)  # type: ignore[no-any-return]
    live = live_tokens if (live_tokens or 0) > 0 or not is_forced else budget
    is_under = drive(folding.until_under(budget, live), folding.settings)
    reason = "could not reach target"
    if folding.has_failed_auth:
        reason = f"provider auth failure{' after partial compaction' if folding.rounds else ''}"
    elif is_under:
        reason = "compacted" if folding.rounds else "already under target"
    return Decision(reason, folding.rounds, budget)


def outcome(folding: Folding, case: dict[str, Any]) -> dict[str, Any]:
    return without_files(older_outcome(folding.settings, folding.window, case))


def without_files(told: dict[str, Any]) -> dict[str, Any]:
    """These vectors tell no files of summaries."""
    for summary in told["summaries"]:
        del summary["file_ids"]
    return told


def called(case: dict[str, Any], params: dict[str, Any]) -> Folding:
    """A run of the preset with a case's settings, as the call wants it."""
    given = {name: params[name] for name in ("fresh_tail_count", "leaf_chunk_tokens") if params.get(name)}
    threshold = params.get("context_threshold")
    if threshold is not None and 0 <= threshold <= 1:  # the plugin takes none that is no share
        given["context_threshold"] = threshold
    return begun(case, PRESET, **given)
