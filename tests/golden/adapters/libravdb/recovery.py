"""libravdb memory's recovery onto ours."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lcm.clock import EPOCH
from lcm.records.query import Recalled
from lcm.retrieval.recovery.fetch import RawTurnRecovery
from lcm.retrieval.recovery.question import anchor_density
from lcm.retrieval.recovery.turns import Witness, sides
from tests.golden.components import component, fields_of, instant

FAILURE_KEYS = {"floor_score": "floor_score", "mean_confidence_thresh": "min_mean_confidence"}
NO_LIMIT = math.inf
SCORES = "anchor_density=anchors semantic_score=semantic recency_score=recency slot_coverage=coverage final_score=score"
WITNESS = "comparison_side=side pastness witness_score=score"
WITNESSED = ("comparison_side", "pastness", "witness_score")


def overlay() -> RawTurnRecovery:
    found: RawTurnRecovery = component("recovery=libravdb", "recovery")
    return found


def retrieval_failure(case: dict[str, Any]) -> dict[str, Any]:
    original, options = overlay(), case["options"]
    given = {ours: options[key] for key, ours in FAILURE_KEYS.items() if key in options}
    if "min_mean_confidence" in given:
        given["min_mean_confidence"] = min(1, max(0, given["min_mean_confidence"]))
    if "min_top_k" in options:
        given["min_top_k"] = max(1, math.floor(options["min_top_k"]))
    rule = replace(original.failure, **given)
    found = rule.signals([answered(item, rule_width()) for item in case["ranked"]], True, rule_width())
    return fields_of(
        found,
        """
        s1_cascade_tier3=is_from_widest s2_top_below_floor=is_weak s3_all_summaries_low_confidence=is_vague
        fire=has_failed
        """,
    )


def rule_width() -> int:
    return overlay().embedder.dim


def answered(item: dict[str, Any], widest: int) -> Recalled:
    """The third tier is the widest; a document without a final score has none."""
    metadata = item["metadata"]
    return replace(
        turn(item, EPOCH),
        kind=metadata.get("type", "message"),
        score=item.get("final_score", 0.0),
        confidence=metadata.get("confidence", 0.0),
        index_tier={1: 64, 2: 256, 3: widest}.get(metadata.get("cascade_tier")),
    )


def turn(item: dict[str, Any], now: datetime) -> Recalled:
    """A turn without an instant was said now."""
    said_at = item["metadata"].get("ts")
    return Recalled(
        item["id"],
        item.get("text", ""),
        "message",
        (),
        now if said_at is None else instant(said_at),
        item["score"],
        item["score"],
        is_recovered=True,
    )


def raw_user_recovery(case: dict[str, Any]) -> dict[str, Any]:
    original, now = overlay(), instant(case["now_ms"])
    ranking = original.raw_user
    if case["recency_lambda"] is not None:
        ranking = replace(ranking, recency_per_s=max(0.0, case["recency_lambda"]))
    turns = [turn(item, now) for item in case["items"]]
    scores = ranking.scores(case["query"], turns, now, original.compared_by)
    return {
        "ranked": [
            {
                "id": turns[i].document_id,
                **fields_of(
                    scores[i],
                    "final_score=score semantic_score=semantic lexical_coverage=coverage recency_score=recency",
                ),
                "temporal_anchor_density": anchor_density(turns[i].text),
            }
            for i in ranking.order(turns, scores)
        ]
    }


def temporal_query(case: dict[str, Any]) -> dict[str, Any]:
    found = overlay().queries.read(case["query"], overlay().compared_by)
    return {
        "indicator": found.indicator,
        "active": found.is_active,
        "matched_patterns": list(found.patterns),
        "slots": list(map(" ".join, found.slots)),
        "selector_applies": found.is_selected,
    }


def temporal_anchor_density(case: dict[str, Any]) -> dict[str, Any]:
    return {"density": anchor_density(case["text"])}


def temporal_ranking(case: dict[str, Any]) -> dict[str, Any]:
    original, options, now = overlay(), case["options"], instant(case["now_ms"])
    ranking = original.temporal
    if "recency_lambda" in options:
        ranking = replace(ranking, recency_per_s=max(0.0, options["recency_lambda"]))
    if "max_selected" in options:
        ranking = replace(ranking, most_chosen=max(1, options["max_selected"]))
    turns = [replace(turn(item, now), score=item.get("final_score", item["score"])) for item in case["items"]]
    tokens = component("token_estimator=utf16_units", "token_estimator").count([one.text for one in turns])
    question = original.queries.read(case["query"], original.compared_by)
    budget = options.get("selection_token_budget", NO_LIMIT)
    found = ranking.rank(question, turns, tokens, budget, now, original.compared_by)
    events = sides(question.slots) if question.is_comparison else None
    by_score = sorted(range(len(turns)), key=lambda i: -found.considered[i].score)
    return {
        "ranked": [{"id": turns[i].document_id, "final_score": found.considered[i].score} for i in found.order],
        "slots": list(map(" ".join, question.slots)),
        "comparison_coverage_applied": found.pair is not None,
        "comparison_slots": list(map(" ".join, events or ())),
        "comparison_min_tokens": fewest_tokens([one.witness for one in found.considered], tokens),
        "comparison_witness_ids": [turns[i].document_id for i in found.pair or ()],
        "candidates": [
            {
                "id": turns[i].document_id,
                "selected": i in found.chosen,
                "slot_matches": list(map(" ".join, one.slots)),
                **fields_of(one, SCORES),
                **(fields_of(one.witness, WITNESS) if one.witness else dict.fromkeys(WITNESSED)),
            }
            for i in by_score
            for one in [found.considered[i]]
        ],
    }


def fewest_tokens(witnesses: Sequence[Witness | None], tokens: Sequence[int]) -> int | None:
    """What the cheapest witness of each event costs, together; None where an event has none."""
    costs = [
        [cost for one, cost in zip(witnesses, tokens, strict=True) if one is not None and one.side == side]
        for side in (0, 1)
    ]
    return min(costs[0]) + min(costs[1]) if all(costs) else None
