"""lossless-claw 0.15's rules of thresholds onto ours."""

from typing import Any

from tests.golden.adapters.lossless_claw_0_15.tokens import SYSTEM
from tests.golden.components import component, fields_of
from tests.golden.originals.thresholds import chosen, runtime_model
from tests.golden.originals.thresholds import threshold_rules as read_rules


def threshold_rules(case: dict[str, Any]) -> dict[str, Any]:
    try:
        rules = read_rules(case["rules"])
    except ValueError:
        return {"error": True}
    model = runtime_model(case["runtime"])
    choice = chosen(rules, model, case.get("session_key") or "")
    runtime = fields_of(model, "provider model model_ref=reference model_context_window=context_tokens")
    resolved = {"model_ref": model.reference, "model_context_window": model.context_tokens}
    if choice is None:
        threshold = component(SYSTEM, "compaction").context_threshold
        resolved |= {"context_threshold": threshold, "source": "global", "specificity": 0}
    else:
        resolved |= fields_of(choice.rule, "context_threshold fresh_tail_count leaf_chunk_tokens rule_name=name")
        resolved |= {"source": "override"} | fields_of(choice, "rule_index=place specificity")
    return {"runtime": _given(runtime), "resolved": _given(resolved)}


def _given(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}
