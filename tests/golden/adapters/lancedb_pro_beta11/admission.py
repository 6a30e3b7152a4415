"""The admission of memory-lancedb-pro 1.1.0-beta.11 onto ours: vetoes, batches, what is not real."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from lcm.errors import ModelError
from lcm.records.document import Candidate
from lcm.writing.admission.amac import GROUNDING, Amac, Utility
from tests.golden.adapters.lancedb_pro import admission as older
from tests.golden.components import component
from tests.golden.originals.admission_settings import batch_size, normalised

CHOICE_OF_MODE = {"off": "balanced", "standalone": "balanced_model", "batch": "balanced_batch"}


def admission_config(case: dict[str, Any]) -> dict[str, Any]:
    settings = normalised(case["raw"])
    models = {"model": settings.model, "model_affinity": settings.model_affinity}
    given = {key: value for key, value in models.items() if value is not None}
    return {**older.shown(settings, f"{older.SHOWN} utility_veto_threshold"), **given}


def admission_evaluate(case: dict[str, Any]) -> dict[str, Any]:
    asked = Queue([case["utility"].get("reply")])
    amac = gate(case, asked)
    shown = evaluated(amac, candidate_of(case["candidate"]), case["candidate_vector"], case)
    return {**shown, "llm_calls": asked.calls}


def admission_batch(case: dict[str, Any]) -> dict[str, Any]:
    asked = Queue(list(case["replies"]))
    candidates = [candidate_of(item["candidate"]) for item in case["items"]]
    amac = gate(case, asked, batch_size(case["batch_chunk_size"])).looked_at(candidates, incidents=Counter())
    vectors = [item["candidate_vector"] for item in case["items"]]
    evaluations = [evaluated(amac, one, vector, case) for one, vector in zip(candidates, vectors, strict=True)]
    return {"evaluations": evaluations, "llm_calls": asked.calls}


@dataclass
class Queue:
    """A language model that replies in order, and tells a call for one candidate from one for several."""

    replies: list[Any]
    calls: list[str] = field(default_factory=list)

    def reply(self, system: str, prompt: str, is_usable: object = None) -> str:
        is_batch = "candidates" in json.loads(prompt)
        self.calls.append("admission-utility-batch" if is_batch else "admission-utility")
        decoded = self.replies.pop(0) if self.replies else None
        if decoded == "throw":
            raise ModelError("the provider failed")
        return "" if decoded is None else json.dumps(decoded)


def gate(case: dict[str, Any], asked: Queue, size: int = 10) -> Amac:
    mode = case["utility"]["mode"]
    preset = "system=lancedb_pro_beta11"
    utility: Utility = component(preset, "admission", f"admission={CHOICE_OF_MODE[mode]}").utility
    if mode != "off":
        changed = {"size": size} if mode == "batch" else {}
        utility = replace(utility, language_model=asked, **changed)  # type: ignore[type-var]
    return normalised(case["config"]).component(utility)


def candidate_of(row: dict[str, Any]) -> Candidate:
    return replace(older.candidate_of(row), metadata={key: row[key] for key in GROUNDING if key in row})


def evaluated(amac: Amac, candidate: Candidate, vector: list[Any] | None, case: dict[str, Any]) -> dict[str, Any]:
    found = older.assessed(amac, candidate, vector, case)
    return {**older.evaluation(found), **{key: found.audit[key] for key in GROUNDING if key in found.audit}}
