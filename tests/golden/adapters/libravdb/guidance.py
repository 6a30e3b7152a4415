"""Guidance vectors: the frame and the protection rule that `guidance=libravdb` configures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lcm.compaction.guidance.protected import ProtectedGuidance, ProtectionVerdict
from lcm.errors import ModelError
from lcm.protocols.models import Embedder, TextKind, Vectors
from lcm.records.conversation import Message
from tests.golden.components import component, fields_of

PATHS = {"words": "sigma", "embedding": "booster", None: "none"}


@dataclass(frozen=True, slots=True)
class Given:
    """An embedder that knows the vectors of a case; one that is null cannot be had."""

    known: Mapping[str, Sequence[float] | None]
    dim: int
    name: str = "given"

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        rows = np.zeros((len(texts), self.dim))
        for row, text in zip(rows, texts, strict=True):
            vector = self.known.get(text)
            if vector is None:
                raise ModelError(f"no vector for {text[:40]!r}")
            row[:] = np.asarray(vector) / (np.linalg.norm(vector) or 1.0)
        return rows.astype(np.float32)


def deontic(case: dict[str, Any]) -> dict[str, Any]:
    guidance: ProtectedGuidance = component("guidance=libravdb", "guidance")
    reading = guidance.frame.read(case["text"])
    return {
        "mask": reading.mask,
        "modalities": list(dict.fromkeys(finding.modality for finding in sorted(reading.findings, key=_bit))),
        "promoted": reading.is_guidance,
        "tokens": [fields_of(finding, "start end modality") for finding in reading.findings],
    }


def deontic_corpora(case: dict[str, Any]) -> dict[str, Any]:
    return deontic(case)


def protected_turn(case: dict[str, Any]) -> dict[str, Any]:
    given = Given({row["text"]: row["vector"] for row in case["embeddings"]}, case["dims"])
    verdict = _verdict(case, given)
    return {
        "protected": verdict.protected_by is not None,
        **_shown(verdict),
        **fields_of(verdict, "booster_similarity=similarity booster_admitted=is_boosted"),
    }


def tier15_corpora(case: dict[str, Any]) -> dict[str, Any]:
    return _shown(_verdict(case, None))


def _shown(verdict: ProtectionVerdict) -> dict[str, Any]:
    names = "stability_ok=is_stable sigma_promoted=by_words surface_hint=has_hint"
    return {"path": PATHS[verdict.protected_by], **fields_of(verdict, names)}


def _verdict(case: dict[str, Any], embedder: Embedder | None) -> ProtectionVerdict:
    guidance = replace(component("guidance=libravdb", "guidance"), booster_embedder=embedder)
    envelope = {"stability_weight": case["stability_weight"]}
    return guidance.verdicts([Message("m", "user", case["text"], "s", envelope=envelope)], incidents=Counter())[0]


def _bit(finding: Any) -> int:
    return ("obligation", "forbidden", "permitted").index(finding.modality)
