"""A gate: what no user said, and what is hardly worth it, is found from its own session alone.

Source: libravdb memory 1.3.5, its gating document; the clamp of H, the counts and the patterns of 1.4.4.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple, get_args

from lcm.checks import check_choice, check_keys, check_range
from lcm.encoding import from_yaml
from lcm.protocols.models import TokenEstimator, Vectors
from lcm.protocols.writing import Assessment, DocumentSort, Neighbour, Neighbours
from lcm.records.conversation import ROLES, Message
from lcm.records.document import Candidate
from lcm.records.rules import Rules
from lcm.token_estimator import CodePoints
from lcm.writing.new_document import embedded_text

LOADS = ("technical_density", "conversational_load", "specificity", "actionability", "technical_load")
_COUNTED = "specificity"
"""The load that counts its matches; the others ask whether there is one."""
_TOKENS_A_UNIT = 100
"""Specificity is by so many tokens; a shorter text counts as so long."""


class PatternScores(NamedTuple):
    """The weights of the patterns that fired in one text, summed, each >= 0; only technical density may be above 1."""

    technical_density: float
    """Not divided by its norm yet."""
    conversational_load: float
    specificity: float
    actionability: float
    technical_load: float


class Familiarity(NamedTuple):
    """How much of one text the memory knows already."""

    h: float
    """Novelty: 1 - the mean cosine of the memories; 1 where there is none."""
    f: float
    """Frequency: how often the like was said."""
    s: float
    """Saturation: how often the like is remembered."""

    @property
    def r(self) -> float:
        """Repetition that is not remembered yet."""
        return self.f * (1 - self.s)


@dataclass(frozen=True, slots=True)
class Patterns:
    """A set of patterns, compiled: every one is asked once, however many loads it weighs in."""

    compiled: Mapping[str, re.Pattern[str]]
    weights: Mapping[str, Mapping[str, float]]
    """Load -> pattern -> weight."""
    weighs: Sequence[tuple[str, float, tuple[tuple[int, float], ...]]]
    """Name, weight a match, and (place of the load, weight) of each load that only asks whether it fires."""

    def matches(self, text: str) -> dict[str, int]:
        """How often each pattern that fires does, in a text without white space around it."""
        return {name: times for name, pattern in self.compiled.items() if (times := len(pattern.findall(text)))}

    def loads(self, matches: Mapping[str, int], tokens: int) -> PatternScores:
        """What the `matches` of a text of so many tokens weigh."""
        sums = [0.0] * len(LOADS)
        counted = 0.0
        for name, a_match, weighs in self.weighs:
            if times := matches.get(name):
                counted += a_match * times
                for place, weight in weighs:
                    sums[place] += weight
        density, conversational, _, actionability, technical = sums
        specificity = min(counted / max(tokens / _TOKENS_A_UNIT, 1.0), 1.0)
        return PatternScores(
            density, min(conversational, 1.0), specificity, min(actionability, 1.0), min(technical, 1.0)
        )


@cache
def load_patterns(rules: Rules) -> Patterns:
    """Read and compile a packaged set.

    Raises:
        ValueError: if there is none of that name.
    """
    if rules not in get_args(Rules):
        raise ValueError(f"rules must be one of: {', '.join(get_args(Rules))}, got {rules!r}")
    content = resources.files("lcm.writing.admission").joinpath("gating_patterns", f"{rules}.yaml").read_text("utf-8")
    written = from_yaml(content)
    compiled = {key: re.compile(pattern, re.ASCII) for key, pattern in written["patterns"].items()}
    weights: dict[str, dict[str, float]] = {load: written[load] for load in LOADS}
    counted = weights[_COUNTED]
    asked = {
        key: tuple((i, weights[load][key]) for i, load in enumerate(LOADS) if load != _COUNTED and key in weights[load])
        for key in compiled
    }
    uncounted = dict.fromkeys((key for key in compiled if key not in counted), 0.0)
    weighs = [(key, a_match, asked[key]) for key, a_match in (uncounted | counted).items()]
    return Patterns(compiled, weights, weighs)


def evidence(
    turn_scores: Sequence[float],
    memory_scores: Sequence[float],
    *,
    turn_cosine: float,
    turn_saturation: int,
    memory_cosine: float,
    memory_saturation: int,
) -> Familiarity:
    """H = 1 - mean of the memories' cosines, each in [0, 1]; F and S = min(how many are near / saturation, 1).

    Args:
        turn_scores: cosines of the nearest turns.
        memory_scores: cosines of the nearest memories.
        turn_cosine: from here a turn is near.
        turn_saturation: so many near turns, or more, give F = 1.
        memory_cosine: from here a memory is near.
        memory_saturation: so many near memories, or more, give S = 1.
    """
    novelty = 1.0
    if memory_scores:
        # Rounding can put a cosine above 1; one that is no number says nothing.
        bounded = [min(score, 1.0) if score > 0 else 0.0 for score in memory_scores]
        novelty = 1 - sum(bounded) / len(bounded)
    return Familiarity(
        h=novelty,
        f=min(sum(score >= turn_cosine for score in turn_scores) / turn_saturation, 1.0),
        s=min(sum(score >= memory_cosine for score in memory_scores) / memory_saturation, 1.0),
    )


_WEIGHTS = ("w1c", "w2c", "w3c", "w1t", "w2t", "w3t")
_UNSAID = frozenset({"summary", "guidance", "authored", "dream"})
"""Kinds of documents that are no turn and no memory of one."""


class GateSignals(NamedTuple):
    """The signals of one text by the letters of the formulas, and what becomes of it; every signal is in [0, 1], `g`,
    `gconv` and `gtech` as long as the weights of each mix add up to 1 at most."""

    t: float
    h: float
    r: float
    d: float
    p: float
    a: float
    dtech: float
    f: float
    s: float
    gconv: float
    gtech: float
    g: float
    is_passed: bool

    @property
    def features(self) -> dict[str, float]:
        """Every signal but G, by its letter."""
        return {name: value for name, value in self._asdict().items() if name not in ("g", "is_passed")}


@dataclass(frozen=True, slots=True)
class Gating:
    """Admits every candidate, and promotes those that a user said and whose G is high enough.

        G      = (1 - T) * G_conv + T * G_tech           promoted where G >= threshold
        G_conv = w1c * H + w2c * R + w3c * D
        G_tech = w1t * P + w2t * A + w3t * Dt

    T technical density, H novelty, R repetition that is not remembered yet, D conversational load, P specificity, A
    actionability, Dt technical load. H and R compare with the nearest turns and memories; the others are weights of
    patterns that fire. What is not promoted is found from its own session alone.
    """

    promotion: Literal["gated", "always"] = "gated"
    """`always` promotes every turn of `roles`, as 1.4.4 does; the signals are told all the same."""
    roles: Sequence[str] = ("user",)
    """Whose candidates are gated, by the last source message; those of others are admitted, never promoted."""
    rules: Rules = "corrected"
    """`original` takes and/or for a path, "every" for an error code, "we make bread" for a command, and the like; and
    it stores a turn before it looks for the like, so that it finds the turn itself."""
    weights: Mapping[str, float] = field(
        default_factory=lambda: {"w1c": 0.35, "w2c": 0.4, "w3c": 0.25, "w1t": 0.4, "w2t": 0.35, "w3t": 0.25}
    )
    """Not normalised: each three should add up to 1."""
    threshold: float = 0.35
    technical_norm: float = 1.5
    """The weights of what fires are divided by it: from here T = 1."""
    turn_hits: int = 10
    """Nearest turns to compare with."""
    memory_hits: int = 5
    """Nearest promoted documents to compare with."""
    turn_cosine: float = 0.8
    """From here a turn says the like."""
    turn_saturation: int = 5
    """So many like turns are as frequent as can be."""
    memory_cosine: float = 0.85
    """From here a memory says the like."""
    memory_saturation: int = 3
    """So many like memories are enough: R = 0."""
    role_stability: Mapping[str, float] = field(
        default_factory=lambda: {"user": 0.5, "assistant": 0.25, "system": 0.2, "tool": 0.2}
    )
    """Of a promoted document the stability is that of its role, or G if that is more; it stands in the audit."""
    token_estimator: TokenEstimator = field(default_factory=CodePoints)
    """By it specificity is counted."""

    def __post_init__(self) -> None:
        check_choice(self, promotion=("gated", "always"))
        if strange := sorted(set(self.roles) - set(ROLES)):
            raise ValueError(f"roles has no {strange[0]!r}; choose from: {', '.join(ROLES)}")
        load_patterns(self.rules)
        check_keys(self, weights=_WEIGHTS, role_stability=ROLES)
        check_range(self, "weights", ge=0)
        check_range(self, "role_stability", "threshold", ge=0, le=1)
        check_range(self, "technical_norm", gt=0)
        check_range(self, "turn_hits", "memory_hits", "turn_saturation", "memory_saturation", ge=1)
        check_range(self, "turn_cosine", "memory_cosine", ge=-1, le=1)

    def signals(
        self, texts: Sequence[str], known: Sequence[tuple[Sequence[float], Sequence[float]]]
    ) -> list[GateSignals]:
        """The gate itself, on many texts.

        Args:
            texts: what was said.
            known: of each text the cosines of the nearest turns, and those of the nearest memories; the text's own
                copy is among them if it is to count.
        """
        trimmed = [text.strip() for text in texts]
        fired = map(self._patterns.matches, trimmed)
        loads = map(self._patterns.loads, fired, self.token_estimator.count(trimmed))
        return [self._mixed(load, self._evidence(*scores)) for load, scores in zip(loads, known, strict=True)]

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
        role = _role(candidate, messages)
        if role not in self.roles:
            said_by = f"said by the {role}" if role else "said by nobody known"
            return Assessment(is_admitted=True, reason=f"{said_by}: not gated", is_durable=False)
        turns: list[Neighbour] = []
        memories: list[Neighbour] = []
        turn_scores: list[float] = []
        if vector is not None:
            own = [1.0] if self.rules == "original" else []
            turns = neighbours.nearest(vector, self.turn_hits - len(own), active_only=True, only=self._is_turn)
            memories = neighbours.nearest(vector, self.memory_hits, active_only=True, only=_is_memory)
            turn_scores = own + [near.cosine for near in turns]
        text = embedded_text(candidate.text, candidate.content).strip()
        fired = self._patterns.matches(text)
        loads = self._patterns.loads(fired, *self.token_estimator.count([text]))
        signals = self._mixed(loads, self._evidence(turn_scores, [near.cosine for near in memories]))
        bound = "at least" if signals.is_passed else "below"
        return Assessment(
            is_admitted=True,
            reason=f"G {signals.g:.3f} is {bound} {self.threshold:.3f}",
            score=signals.g,
            features=signals.features,
            audit={
                "promotion": self.promotion,
                "threshold": self.threshold,
                "weights": dict(self.weights),
                "rules": self.rules,
                "fired": fired,
                "turns": {near.document.document_id: near.cosine for near in turns},
                "memories": {near.document.document_id: near.cosine for near in memories},
                "has_vector": vector is not None,
                "stability": max(self.role_stability[role], signals.g),
            },
            is_durable=signals.is_passed or self.promotion == "always",
        )

    @property
    def _patterns(self) -> Patterns:
        return load_patterns(self.rules)

    def _evidence(self, turn_scores: Sequence[float], memory_scores: Sequence[float]) -> Familiarity:
        return evidence(
            turn_scores,
            memory_scores,
            turn_cosine=self.turn_cosine,
            turn_saturation=self.turn_saturation,
            memory_cosine=self.memory_cosine,
            memory_saturation=self.memory_saturation,
        )

    def _mixed(self, loads: PatternScores, known: Familiarity) -> GateSignals:
        w = self.weights
        t = min(loads.technical_density / self.technical_norm, 1.0)
        r = known.r
        gconv = w["w1c"] * known.h + w["w2c"] * r + w["w3c"] * loads.conversational_load
        gtech = w["w1t"] * loads.specificity + w["w2t"] * loads.actionability + w["w3t"] * loads.technical_load
        g = (1 - t) * gconv + t * gtech
        return GateSignals(
            t=t,
            h=known.h,
            r=r,
            d=loads.conversational_load,
            p=loads.specificity,
            a=loads.actionability,
            dtech=loads.technical_load,
            f=known.f,
            s=known.s,
            gconv=gconv,
            gtech=gtech,
            g=g,
            is_passed=g >= self.threshold,
        )

    def _is_turn(self, sort: DocumentSort) -> bool:
        return sort.role in self.roles and sort.kind not in _UNSAID


def _is_memory(sort: DocumentSort) -> bool:
    return sort.is_durable and sort.kind not in _UNSAID


def _role(candidate: Candidate, messages: Sequence[Message]) -> str:
    """Of the candidate's last source message; empty where that is not at hand."""
    last = candidate.source_message_ids[-1]
    return next((message.role for message in reversed(messages) if message.message_id == last), "")
