"""Admission by AMAC-v1: five features, weighted and added; too low a sum is refused. And no admission at all.

What supports a candidate is the words of the conversation, and their order, compared with single lines and sentences;
how useful it will be in later sessions a constant says, or a language model.

Source: memory-lancedb-pro, admission-control; the prompt is ours.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from importlib import resources
from string import Template
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from rapidfuzz.distance import LCSseq

from lcm.checks import check_keys, check_range, check_weights
from lcm.clock import EPOCH, format_instant
from lcm.encoding import well_formed
from lcm.javascript import clamp01, is_finite_number, last_units, to_number, trim, utf16_length
from lcm.language_model.replies import Answer, asked
from lcm.protocols.contract import Contract
from lcm.protocols.models import LanguageModel, Vectors
from lcm.protocols.writing import Assessment, Neighbour, Neighbours
from lcm.records.conversation import Message
from lcm.records.document import MEMORY_CATEGORIES, Candidate
from lcm.text import words_in
from lcm.writing.new_document import shown_words


@dataclass(frozen=True, slots=True)
class AdmitAll:
    """Every candidate passes, and no score is given."""

    contract = Contract(is_off=True)

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
        return Assessment(is_admitted=True, reason="admission is off")


MIN_SENTENCE_LENGTH = 4
"""UTF-16 units of a sentence that counts as a span of its own."""

_SENTENCE_ENDS = re.compile("[。！？!?]")


class ConversationSupport(NamedTuple):
    """How well a conversation supports a candidate; each in [0, 1]."""

    confidence: float
    best: float
    """The highest F1 with one span."""
    coverage: float
    """The share of the candidate's distinct words that the conversation has."""


def spans(text: str) -> list[str]:
    """Every line, and every sentence of a line that has 4 characters, each once. A full stop ends no sentence."""
    found: dict[str, None] = {}
    for raw in text.split("\n"):
        if line := trim(raw):
            found[line] = None
            for piece in map(trim, _SENTENCE_ENDS.split(line)):
                if utf16_length(piece) >= MIN_SENTENCE_LENGTH:
                    found[piece] = None
    return list(found)


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    return int(LCSseq.similarity(left, right))


def f1(left: Sequence[str], right: Sequence[str]) -> float:
    """2 P R / (P + R) with P = common / |left| and R = common / |right|: 2 common / (|left| + |right|)."""
    return 2 * common_length(left, right) / (len(left) + len(right)) if left and right else 0.0


def support(candidate: Candidate, texts: Sequence[str]) -> ConversationSupport:
    """confidence = 0.7 best + 0.3 coverage - 0.25 (1 - coverage), bound to [0, 1].

    The candidate's words are those of its text and then its content, so that a candidate that says one supported
    sentence in both has a best F1 of about 2/3.

    Args:
        candidate: what is judged; one without words has no support at all.
        texts: the conversation, a message a text.
    """
    words = words_in(f"{candidate.text}\n{candidate.content}", "han")
    if not words:
        return ConversationSupport(0.0, 0.0, 0.0)
    missing, best = set(words), 0.0
    distinct = frozenset(words)
    for text in texts:
        message_words, pieces = _words_of(text)
        if message_words.isdisjoint(distinct):
            continue
        missing -= message_words
        for piece in pieces:
            at_most = 2 * min(len(words), len(piece)) / (len(words) + len(piece)) if piece else 0.0
            if at_most > best:
                best = max(best, f1(words, piece))
    coverage = 1 - len(missing) / len(distinct)
    return ConversationSupport(clamp01(0.7 * best + 0.3 * coverage - 0.25 * (1 - coverage), 0.0), best, coverage)


@lru_cache(maxsize=4096)
def _words_of(text: str) -> tuple[frozenset[str], list[list[str]]]:
    """The words of a message, and those of each of its spans: one message is compared with many candidates."""
    return frozenset(words_in(text, "han")), [words_in(span, "han") for span in spans(text)]


UNKNOWN_UTILITY = 0.5
"""Where nobody could say."""

_PROMPT = Template(resources.files("lcm.writing").joinpath("prompts", "utility.txt").read_text("utf-8"))
_SYSTEM = _PROMPT.substitute(
    shown="`conversation`, the last part of what was said, oldest first, and `candidate`, a note that was\n"
    "drawn from it. The note has",
    reply='{"utility": <number from 0 to 1>, "reason": "<one short sentence>"}',
)
_SYSTEM_OF_BATCH = _PROMPT.substitute(
    shown="`candidates`, notes that were drawn from one conversation, each with an `index`. A note has",
    reply='{"results": [{"index": 1, "utility": <number from 0 to 1>, "reason": "<one short sentence>"}, ...]},\n'
    "with one entry for each note",
)
_log = logging.getLogger(__name__)


class Rating(NamedTuple):
    """A utility, and why."""

    value: float
    reason: str | None = None


class Utility(Protocol):
    """Laws: the value is in [0, 1]; nothing is raised but that a replay lacks a reply."""

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating: ...


@dataclass(frozen=True, slots=True)
class FixedUtility:
    """Rates every candidate with the same utility, `value`."""

    value: float = UNKNOWN_UTILITY

    def __post_init__(self) -> None:
        check_range(self, "value", ge=0, le=1)

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        return Rating(self.value, "fixed")


@dataclass(frozen=True, slots=True)
class ModelUtility:
    """Rates a candidate by a language model that reads it and the end of the conversation; 0.5 without a number.

    Incidents: `utility_no_reply`, `utility_no_number`.
    """

    language_model: LanguageModel
    conversation_chars: int = 3000
    """UTF-16 units from the end of the conversation that the model is shown."""

    def __post_init__(self) -> None:
        check_range(self, "conversation_chars", ge=0)

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        shown = {"conversation": last_lines(messages, self.conversation_chars), "candidate": _shown(candidate)}
        found, _, problem = _asked(self.language_model, _SYSTEM, shown, "utility", incidents)
        return Rating(UNKNOWN_UTILITY, problem) if found is None else _rating(found, incidents)


@dataclass(frozen=True, slots=True)
class BatchUtility:
    """Rates the candidates of one extraction by a language model that reads several at once, and no conversation.

    One call for each `size` candidates, without those that extraction found constructed. A candidate that the reply
    leaves out is taken as 0.5; where a call has no reply, each of its candidates is asked for alone.

    Incidents: `utility_no_reply`, `utility_no_number`.
    """

    language_model: LanguageModel
    size: int = 10
    """Candidates a call at most."""

    def __post_init__(self) -> None:
        check_range(self, "size", ge=1)

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        return ModelUtility(self.language_model, conversation_chars=0).rate(candidate, (), incidents=incidents)

    def looked_at(self, candidates: Sequence[Candidate], *, incidents: Counter[str]) -> Utility:
        """What rates each of these candidates, having seen all of them."""
        rated: list[tuple[Candidate, Rating]] = []
        for start in range(0, len(candidates), self.size):
            chunk = candidates[start : start + self.size]
            sent = [one for one in chunk if one.metadata.get("grounding") != "constructed"]
            rated += zip(sent, self._rated(sent, incidents), strict=True)
        return _Rated(tuple(rated))

    def _rated(self, sent: Sequence[Candidate], incidents: Counter[str]) -> list[Rating]:
        if not sent:
            return []
        shown = {"candidates": [{"index": i, **_shown(candidate)} for i, candidate in enumerate(sent, 1)]}
        found = _asked(self.language_model, _SYSTEM_OF_BATCH, shown, "results", incidents).found
        if found is None:
            return [self.rate(candidate, (), incidents=incidents) for candidate in sent]
        listed = found.get("results")
        rows = {row["index"]: row for row in listed if _is_row(row)} if isinstance(listed, list) else {}
        missing = Rating(UNKNOWN_UTILITY, "the reply leaves it out")
        incidents["utility_no_number"] += sum(i not in rows for i in range(1, len(sent) + 1))
        return [_rating(rows[i], incidents) if i in rows else missing for i in range(1, len(sent) + 1)]


@dataclass(frozen=True, slots=True)
class _Rated:
    """Ratings of candidates that were all looked at."""

    ratings: tuple[tuple[Candidate, Rating], ...]

    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        return next(rating for known, rating in self.ratings if known is candidate)


def _asked(
    language_model: LanguageModel, system: str, shown: Mapping[str, Any], key: str, incidents: Counter[str]
) -> Answer:
    answer = asked(language_model, system, shown, key, otherwise="no utility")
    if answer.found is None:
        incidents["utility_no_reply"] += 1
    return answer


def _rating(found: Mapping[str, Any], incidents: Counter[str]) -> Rating:
    said = found.get("reason")
    reason = trim(said) or None if isinstance(said, str) else None
    value = to_number(found["utility"]) if "utility" in found else math.nan
    if not math.isfinite(value):
        _log.warning("utility taken as %s: no number in %.200r", UNKNOWN_UTILITY, found)
        incidents["utility_no_number"] += 1
        return Rating(UNKNOWN_UTILITY, reason)
    return Rating(clamp01(value, UNKNOWN_UTILITY), reason)


def _is_row(row: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(row, dict) and is_finite_number(row.get("index"))


def _shown(candidate: Candidate) -> dict[str, str]:
    return {"category": candidate.category, **shown_words(candidate)}


def last_texts(messages: Sequence[Message], max_chars: int) -> list[str]:
    """What was said in the last `max_chars` UTF-16 units, a message a text, in order; the first may lack its begin."""
    texts: list[str] = []
    room = max_chars
    for message in reversed(messages):
        if room <= 0:
            break
        texts.append(last_units(message.content, room))
        room -= utf16_length(message.content) + 1  # one for the line break between two messages
    return texts[::-1]


def last_lines(messages: Sequence[Message], max_chars: int) -> str:
    """The same for a prompt: `speaker: words`, a message a paragraph."""
    texts = last_texts(messages, max_chars)
    tail = messages[len(messages) - len(texts) :]
    return "\n".join(
        f"{message.author or message.role}: {well_formed(text)}" for message, text in zip(tail, texts, strict=True)
    )


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
    contract = Contract(reads=("category",))

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
