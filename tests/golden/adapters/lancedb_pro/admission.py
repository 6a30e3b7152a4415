"""memory-lancedb-pro's admission onto ours."""

import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from lcm.clock import EPOCH
from lcm.errors import ModelError
from lcm.protocols.models import Vectors
from lcm.protocols.writing import Assessment, Neighbour
from lcm.records.conversation import Message
from lcm.records.document import Candidate, Document
from lcm.text import words_in
from lcm.writing.admission.amac import (
    Amac,
    Utility,
    common_length,
    f1,
    max_similarity,
    recency_gap,
    spans,
    support,
)
from tests.golden.components import component, fields_of, milliseconds
from tests.golden.originals.admission_settings import PluginAdmission, normalised
from tests.golden.originals.row_fields import memory_category

_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
SHOWN = """
    preset enabled=is_enabled utility_mode reject_threshold admit_threshold
    novelty_candidate_pool_size=novelty_pool_size audit_metadata persist_rejected_audits
"""
CHOICE_OF_PRESET = {"balanced": "balanced", "conservative": "conservative", "high-recall": "high_recall"}


def admission_tokenize(case: dict[str, Any]) -> dict[str, Any]:
    return {"tokens": words_in(case["text"], "han"), "spans": spans(case["text"])}


def admission_rouge(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "lcs_length": common_length(case["left"], case["right"]),
        "f1": f1(case["left"], case["right"]),
    }


def admission_confidence(case: dict[str, Any]) -> dict[str, Any]:
    found = support(candidate_of(case["candidate"]), [case["conversation"]])
    return {
        "score": found.confidence,
        "best_support": found.best,
        "coverage": found.coverage,
        "unsupported_ratio": 1 - found.coverage,
    }


def admission_novelty(case: dict[str, Any]) -> dict[str, Any]:
    near = compared(case["candidate_vector"], case["matches"])
    amac: Amac = component("admission=balanced", "admission")
    similarity = max_similarity(near)
    return {
        "score": 1 - similarity,
        "max_similarity": similarity,
        "matched_ids": [n.document.document_id for n in near if n.cosine >= amac.similar_cosine],
        "compared_ids": [n.document.document_id for n in near],
    }


def admission_recency_gap(case: dict[str, Any]) -> float:
    # A document always has an instant: those without one drop out.
    stamps = [float(stamp) for stamp in case["timestamps_ms"] if stamp is not None and math.isfinite(float(stamp))]
    near = [Neighbour(document_of("d", "", "other", stamp), 0.0) for stamp in stamps]
    return recency_gap(near, instant(case["now_ms"]), float(case["half_life_days"]))


def admission_config(case: dict[str, Any]) -> dict[str, Any]:
    return shown(normalised(case["raw"]))


def admission_presets(case: dict[str, Any]) -> dict[str, Any]:
    amac: Amac = component(f"admission={CHOICE_OF_PRESET[case['preset']]}", "admission")
    names = "weights reject_threshold admit_threshold novelty_pool_size recency_half_life_days type_priors"
    configured = PluginAdmission(preset=case["preset"], **fields_of(amac, names))
    return {**shown(configured), "type_prior_scores": dict(amac.type_priors)}


def admission_evaluate(case: dict[str, Any]) -> dict[str, Any]:
    utility: Utility = component("admission=balanced", "admission").utility
    if case["utility"]["mode"] == "standalone":
        utility = component("admission=balanced_model", "admission").utility
        utility = replace(utility, language_model=Replying(case["utility"]["reply"]))
    amac = normalised(case["config"]).component(utility)
    shown = evaluation(assessed(amac, candidate_of(case["candidate"]), case["candidate_vector"], case))
    del shown["thresholds"]["utility_veto"]
    return shown


def assessed(amac: Amac, candidate: Candidate, vector: list[Any] | None, case: dict[str, Any]) -> Assessment:
    return amac.assess(
        candidate,
        np.asarray([vector]) if vector else None,
        Listed(compared(vector or [], case["raw_matches"])),
        [Message("m", "user", case["conversation"], "s")],
        instant(case["now_ms"]),
        incidents=Counter(),
    )


def evaluation(found: Assessment) -> dict[str, Any]:
    audit, names = found.audit, ("decision", "hint", "max_similarity", "thresholds", "weights", "version")
    return {
        "score": found.score,
        "feature_scores": dict(found.features),
        **{name: audit[name] for name in names},
        **{f"{kind}_ids": audit[f"{kind}_existing_memory_ids"] for kind in ("matched", "compared")},
        "has_utility_reason": bool(audit["utility_reason"]),
        "evaluated_at": milliseconds(datetime.fromisoformat(audit["evaluated_at"])),
    }


@dataclass(frozen=True, slots=True)
class Replying:
    """A language model with one reply; "throw" fails, null says nothing that could be read."""

    decoded: Any

    def reply(self, system: str, prompt: str, is_usable: object = None) -> str:
        if self.decoded == "throw":
            raise ModelError("the provider failed")
        return "" if self.decoded is None else json.dumps(self.decoded)


@dataclass(frozen=True, slots=True)
class Listed:
    """What a search returned already: all of it, in that order."""

    found: list[Neighbour]

    def nearest(self, vector: Vectors, k: int, *, active_only: bool) -> list[Neighbour]:
        return self.found


def compared(vector: list[Any], rows: list[dict[str, Any]]) -> list[Neighbour]:
    """The rows with their cosines; without a vector there is nothing to compare."""
    return [
        Neighbour(
            document_of(
                row["id"],
                row.get("text", ""),
                row.get("metadata", {}).get("memory_category")
                or memory_category(row.get("category"), row.get("text", "")),
                row.get("timestamp_ms", 0),
            ),
            cosine(vector, row["vector"]),
        )
        for row in (rows if vector else ())
    ]


def candidate_of(row: dict[str, Any]) -> Candidate:
    fields = {key: row[key] for key in ("category", "overview", "content")}
    return Candidate(row["abstract"], source_message_ids=("m",), **fields)


def document_of(document_id: str, text: str, category: str, timestamp_ms: float) -> Document:
    return Document(document_id, text, (f"{document_id} m",), "c", "s", instant(timestamp_ms), category=category)


def instant(timestamp_ms: float) -> datetime:
    """Ours end with the years that they can name."""
    return EPOCH + timedelta(milliseconds=min(max(timestamp_ms, _EARLIEST_MS), _LATEST_MS))


def cosine(left: list[Any], right: list[Any]) -> float:
    """Over the common prefix; what is no number counts as 0."""
    width = min(len(left), len(right))
    a, b = (np.array([_component(x) for x in side[:width]]) for side in (left, right))
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0


def _component(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def shown(settings: PluginAdmission, names: str = SHOWN) -> dict[str, Any]:
    found = {
        **fields_of(settings, names),
        "weights": dict(settings.weights),
        "recency": {"half_life_days": settings.recency_half_life_days},
        "type_priors": dict(settings.type_priors),
    }
    path = settings.rejected_audit_file_path
    return found if path is None else {**found, "rejected_audit_file_path": path}
