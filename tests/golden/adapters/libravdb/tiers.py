"""libravdb memory's index tiers: truncation, and the way of a query through the widths."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lcm.retrieval.indexing import best
from lcm.retrieval.vector_index.hnsw_tiers import Numbers, Step, descend, truncate
from tests.golden.components import component

FULL_WIDTH = 768


def matryoshka(case: dict[str, Any]) -> dict[str, Any]:
    vectors = np.array([case["vector"]], np.float32)
    if case["dims"] is not None:
        return {"vector": truncate(vectors, case["dims"])[0].tolist()}
    if vectors.shape[1] < FULL_WIDTH:
        return {"error": True}
    cut = [truncate(vectors, width)[0].tolist() for width in widths()]
    return dict(zip(("l1", "l2", "l3"), cut, strict=True))


def cascade_search(case: dict[str, Any]) -> dict[str, Any]:
    preset = component("vector_index=libravdb", "vector_index").exit_thresholds
    thresholds = [case.get(f"exit_threshold_l{place}", given) for place, given in enumerate(preset, 1)]
    first = len(thresholds) if case["budget_ms"] <= 0 else 0  # who is late goes to the last width at once
    asked = [answering(case["tiers"][name], case) for name in ("l1", "l2", "l3")][first:]
    (way,) = (
        [step._replace(place=step.place + first) for step in way] for way in descend(1, asked, thresholds[first:])
    )
    ids, scores = way[-1].answer
    return {
        "tier_used": way[-1].place + 1,
        "dims": widths()[way[-1].place],
        "hits": [{"id": document_id, "score": score} for document_id, score in zip(ids, scores, strict=True)],
        "exits": [
            {
                "tier": step.place + 1,
                "dims": widths()[step.place],
                "best_score": step.evidence,
                "exited": step is way[-1],
            }
            for step in way
        ],
    }


def widths() -> list[int]:
    return [width or FULL_WIDTH for width in component("vector_index=libravdb", "vector_index").widths]


def answering(records: list[dict[str, Any]], case: dict[str, Any]) -> Callable[[Numbers], list[Step]]:
    """A width that answers with the given records, float32 as they are stored."""
    kept = [record for record in records if record["id"] not in case["exclude"]]
    scores = np.array([record["score"] for record in kept], np.float32).astype(np.float64)
    answer = best([record["id"] for record in kept], scores, case["k"])
    return lambda numbers: [Step(answer, answer[1][0] if answer[1] else 0.0) for _ in numbers]
