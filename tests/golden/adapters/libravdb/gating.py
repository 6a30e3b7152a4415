"""libravdb memory's gate, token estimators, fallback embedder and windows onto ours."""

from dataclasses import replace
from typing import Any

from lcm.retrieval.embedder.hashing import TokenSum
from lcm.token_estimator import CodePoints
from lcm.writing.admission.gating import Gating
from tests.golden.components import component, fields_of


def gating(case: dict[str, Any]) -> dict[str, Any]:
    gate = configured(case["config"] or {})
    (found,) = gate.signals([case["text"]], [(case["turn_scores"], case["memory_scores"])])
    return fields_of(
        found, "t h r d p a d_tech=dtech input_freq=f mem_saturation=s g_conv=gconv g_tech=gtech g passes=is_passed"
    )


def token_estimate_host(case: dict[str, Any]) -> dict[str, int]:
    (tokens,) = component("token_estimator=script_chars", "token_estimator").count([case["text"]])
    return {"tokens": tokens}


def token_estimate_sidecar(case: dict[str, Any]) -> dict[str, int]:
    return {
        "floor_estimate": sidecar_estimator("code_points").count([case["text"]])[0],
        "ceil_estimate": sidecar_estimator("code_points_up").count([case["text"]])[0],
    }


def deterministic_embedding(case: dict[str, Any]) -> dict[str, list[float]]:
    embedder: TokenSum = component("embedder=token_sum", "embedder")
    return {"vector": replace(embedder, dim=case["dims"]).embed([case["text"]], "document")[0].tolist()}


def embedding_windows(case: dict[str, Any]) -> dict[str, list[list[int]]]:
    windows = token_windows(case["tokens"], case["window"], case["stride"])
    return {"windows": [list(window) for window in windows]}


def configured(config: dict[str, Any]) -> Gating:
    """The preset with what a case sets; a norm of 0 or less means that it is not set."""
    gate: Gating = component("admission=libravdb", "admission")
    named = {"threshold": "threshold", "tech_norm": "technical_norm"}
    given = {named[key]: value for key, value in config.items() if key in named and (key == "threshold" or value > 0)}
    weights = {key: value for key, value in config.items() if key in gate.weights}
    return replace(gate, weights={**gate.weights, **weights}, **given)


def sidecar_estimator(choice: str) -> CodePoints:
    """As chosen, with the empty text at one token."""
    estimator: CodePoints = component(f"token_estimator={choice}", "token_estimator")
    return replace(estimator, empty_tokens=1)


def token_windows(tokens: int, window: int, overlap: int) -> list[tuple[int, int]]:
    """Where fixed windows over so many tokens begin and end: each repeats `overlap` tokens of the one before it.

    The last is the first that reaches the end. With a window of 0 there is one; an overlap that is negative, or as
    long as the window, is none.

    Source: libravdb memory 1.4.4, long documents.
    """
    if window <= 0 or tokens <= window:
        return [(0, tokens)]
    step = window - overlap if 0 <= overlap < window else window
    count = 1 + -(-(tokens - window) // step)
    return [(start, min(start + window, tokens)) for start in range(0, count * step, step)]
