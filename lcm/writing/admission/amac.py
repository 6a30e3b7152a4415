"""AMAC-v1: five features, weighted and added; too low a sum is refused.

Source: memory-lancedb-pro, admission-control.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from lcm.checks import check_keys, check_range, check_weights
from lcm.clock import EPOCH, format_instant
from lcm.javascript import clamp01
from lcm.protocols.models import Vectors
from lcm.protocols.writing import Assessment, Neighbour, Neighbours
from lcm.records.conversation import Message
from lcm.records.document import MEMORY_CATEGORIES, Candidate
from lcm.writing.admission.confidence import support
from lcm.writing.admission.utility import BatchUtility, FixedUtility, Utility, last_texts

VERSION = "amac-v1"
DECISIONS = {True: "pass_to_dedup", False: "reject"}
GROUNDING = ("grounding", "conversation_register")
"""What extraction may say of a candidate in its metadata: whether it is real, and how the conversation was meant."""
FEATURES = ("utility", "confidence", "novelty", "recency", "type_prior")


def _balanced_weights() -> dict[str, float]:
    return {"utility": 0.1, "confidence": 0.1, "novelty": 0.1, "recency": 0.1, "type_prior": 0.6}


def _balanced_type_priors() -> dict[str, float]:
    return {"profile": 0.95, "preferences": 0.9, "entities": 0.75, "events": 0.45, "cases": 0.8, "patterns": 0.85}


@dataclass(frozen=True, slots=True)
class Amac:
    """score = sum of weight x feature / sum of weights; a candidate is refused where score < reject_threshold.

    Whatever its score, one of too little utility is refused, and unseen one that extraction found constructed rather
    than real (`grounding` in its metadata). In fiction (`conversation_register`) no category has a higher prior than
    events.

    The features, each in [0, 1]: utility (what it will be good for), confidence (how well the conversation supports
    it), novelty (1 - the highest cosine among the relevant neighbours), recency (1 - 2^(-days / half-life) since the
    newest of them), type_prior (by category). Relevant are the nearest `novelty_pool_size` documents, ended ones
    included: of them those of the candidate's category, if there are any.
    """

    weights: Mapping[str, float] = field(default_factory=_balanced_weights)
    """One for each of the five features; only their proportions matter."""
    reject_threshold: float = 0.45
    utility_veto: float = 0.0
    """A utility no higher than this refuses the candidate; 0 = none does."""
    admit_threshold: float = 0.6
    """From here on, and unlike anything known, the hint in the audit is "add"; it decides nothing."""
    similar_cosine: float = 0.55
    """From here on a document counts as like the candidate, in the audit and in the hint."""
    novelty_pool_size: int = 8
    recency_half_life_days: float = 14.0
    type_priors: Mapping[str, float] = field(default_factory=_balanced_type_priors)
    """One for each of the six categories."""
    other_prior: float = 0.5
    """Of any other category: it speaks neither for a candidate nor against it."""
    conversation_chars: int = 8000
    """UTF-16 units from the end of the conversation that confidence looks at."""
    utility: Utility = field(default_factory=FixedUtility)
    is_off = False
    reads = ("category",)

    def __post_init__(self) -> None:
        check_keys(self, weights=FEATURES, type_priors=MEMORY_CATEGORIES)
        check_weights(self, "weights")
        check_range(self, "type_priors", ge=0, le=1)
        check_range(self, "reject_threshold", "utility_veto", "admit_threshold", "other_prior", ge=0, le=1)
        if self.admit_threshold < self.reject_threshold:
            raise ValueError(
                f"admit_threshold must be >= reject_threshold ({self.reject_threshold}), got {self.admit_threshold}"
            )
        check_range(self, "similar_cosine", ge=-1, le=1)
        check_range(self, "novelty_pool_size", ge=1)
        check_range(self, "recency_half_life_days", gt=0)
        check_range(self, "conversation_chars", ge=0)
        if not callable(getattr(self.utility, "rate", None)):
            raise TypeError(f"utility must have rate(), got {self.utility!r}")

    def assess(
        self,
        candidate: Candidate,
        vector: Vectors | None,
        neighbours: Neighbours,
        messages: Sequence[Message],
        now: datetime,
        *,
        incidents: Counter[str],
    ) -> Assessment:
        if candidate.metadata.get("grounding") == "constructed":
            return self._refused_unseen(candidate, now)
        near: list[Neighbour] = []
        if vector is not None:
            pool = neighbours.nearest(vector, self.novelty_pool_size, active_only=False)
            near = relevant(pool, candidate.category)
        rating = self.utility.rate(candidate, messages, incidents=incidents)
        similarity = max_similarity(near)
        features = {
            "utility": rating.value,
            "confidence": support(candidate, last_texts(messages, self.conversation_chars)).confidence,
            "novelty": 1 - similarity,
            "recency": recency_gap(near, now, self.recency_half_life_days),
            "type_prior": self._prior(candidate),
        }
        weights = self._shares()
        score = sum(weights[name] * features[name] for name in FEATURES)
        is_vetoed = self.utility_veto > 0 and rating.value <= self.utility_veto
        is_admitted = score >= self.reject_threshold and not is_vetoed
        is_new = score >= self.admit_threshold and similarity < self.similar_cosine
        hint = ("add" if is_new else "update_or_merge") if is_admitted else None
        bound = "at least" if is_admitted else "below"
        reason = f"score {score:.3f} is {bound} {self.reject_threshold:.3f}"
        if is_vetoed:
            reason = f"utility {rating.value:.3f} is at most {self.utility_veto:.3f}"
        audit = self._audit(candidate, hint, rating.reason, near, now)
        audit["thresholds"]["utility_veto"] = self.utility_veto
        return Assessment(is_admitted, reason, score, features, {**audit, "decision": DECISIONS[is_admitted]})

    def looked_at(self, candidates: Sequence[Candidate], *, incidents: Counter[str]) -> "Amac":
        """This gate, its utility having seen them all; where that asks for each alone, the gate itself."""
        if not isinstance(self.utility, BatchUtility):
            return self
        return replace(self, utility=self.utility.looked_at(candidates, incidents=incidents))

    def _refused_unseen(self, candidate: Candidate, now: datetime) -> Assessment:
        audit = self._audit(candidate, None, None, (), now)
        features = dict.fromkeys(FEATURES, 0.0)
        return Assessment(False, "constructed, not real", 0.0, features, {**audit, "decision": DECISIONS[False]})

    def _prior(self, candidate: Candidate) -> float:
        prior = self.type_priors.get(candidate.category, self.other_prior)
        is_fiction = candidate.metadata.get("conversation_register") == "fiction"
        return min(prior, self.type_priors["events"]) if is_fiction else prior

    def _shares(self) -> dict[str, float]:
        total = sum(self.weights[name] for name in FEATURES)
        return {name: self.weights[name] / total for name in FEATURES}

    def _audit(
        self,
        candidate: Candidate,
        hint: str | None,
        utility_reason: str | None,
        near: Sequence[Neighbour],
        now: datetime,
    ) -> dict[str, Any]:
        return {
            "version": VERSION,
            "hint": hint,
            "utility_reason": utility_reason,
            "thresholds": {"reject": self.reject_threshold, "admit": self.admit_threshold},
            "weights": self._shares(),
            "matched_existing_memory_ids": [n.document.document_id for n in near if n.cosine >= self.similar_cosine],
            "compared_existing_memory_ids": [n.document.document_id for n in near],
            "max_similarity": max_similarity(near),
            "evaluated_at": format_instant(now),
            **{key: candidate.metadata[key] for key in GROUNDING if key in candidate.metadata},
        }


_DAY = timedelta(days=1)


def relevant(neighbours: Sequence[Neighbour], category: str) -> list[Neighbour]:
    """Those of the candidate's own category, if there is one among them, else all."""
    return [near for near in neighbours if near.document.category == category] or list(neighbours)


def max_similarity(neighbours: Sequence[Neighbour]) -> float:
    """The highest cosine; 0 where none is above it. novelty = 1 - max_similarity."""
    return clamp01(max((near.cosine for near in neighbours), default=0.0), 0.0)


def recency_gap(neighbours: Sequence[Neighbour], now: datetime, half_life_days: float) -> float:
    """1 - 2^(-days / half_life_days) since the newest; 1 where there is none, or none that says when."""
    newest = max((near.document.created_at for near in neighbours), default=EPOCH)
    if newest <= EPOCH:
        return 1.0
    if now <= newest:
        return 0.0
    with np.errstate(divide="ignore", over="ignore"):  # a half-life of 0 forgets at once
        gone = 1 - np.exp2(-np.divide((now - newest) / _DAY, half_life_days))
    return clamp01(float(gone), 1.0)
